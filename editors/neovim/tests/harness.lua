-- What scenarios are written with. A scenario is a function that runs in a real, headless Neovim with the plugin, as a person
-- would have it; the first thing that does not come true ends it.

local M = {}

--- Longer than a loaded machine takes for the longest step.
local PATIENCE = tonumber(vim.env.STITCHCUDA_TEST_PATIENCE or 300) * 1000

---@type string[]
M.said = {}

--- Everything that is said to the person.
vim.notify = function(text)
  M.said[#M.said + 1] = text
end

---@param value any
---@param text string
function M.check(value, text)
  if not value then
    error(text, 2)
  end
  return value
end

--- Waits until `predicate` gives something.
---@generic T
---@param what string
---@param predicate fun(): T?
---@return T
function M.wait(what, predicate)
  local value
  vim.wait(PATIENCE, function()
    value = predicate()
    return value
  end, 20)
  if not value then
    error(('waited in vain for %s; said: %s'):format(what, vim.inspect(M.said)), 2)
  end
  return value
end

--- Lets the editor run for a while, to see that something does not happen.
---@param milliseconds integer
function M.pause(milliseconds)
  vim.wait(milliseconds, function()
    return false
  end, 20)
end

--- Waits until something that matches is said.
---@param pattern string
---@return string
function M.wait_for_message(pattern)
  return M.wait('a message like ' .. pattern, function()
    return vim.iter(M.said):find(function(text)
      return text:find(pattern)
    end)
  end)
end

--- Opens a file and waits for the server.
---@param name string
---@return integer bufnr, vim.lsp.Client client
function M.open(name)
  vim.cmd.edit(name)
  local bufnr = vim.api.nvim_get_current_buf()
  return bufnr, M.attached(bufnr)
end

---@param bufnr integer
---@return vim.lsp.Client
function M.attached(bufnr)
  return M.wait('the server', function()
    local client = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
    return client and client.initialized and client
  end)
end

---@param bufnr integer
---@return string
function M.text(bufnr)
  return table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n'
end

--- The first line that contains `text`, from 1.
---@param bufnr integer
---@param text string
---@return integer
function M.line_of(bufnr, text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    if line:find(text, 1, true) then
      return number
    end
  end
  error(('no line has %s'):format(text), 2)
end

--- Waits for a diagnostic of this code.
---@param bufnr integer
---@param code string
---@return vim.Diagnostic
function M.diagnostic(bufnr, code)
  return M.wait('a diagnostic ' .. code, function()
    return vim.iter(vim.diagnostic.get(bufnr)):find(function(diagnostic)
      return diagnostic.code == code and diagnostic.source == 'stitchcuda'
    end)
  end)
end

--- Waits until a hint is shown on a line that contains `text`.
---@param bufnr integer
---@param text string
---@return string
function M.hint(bufnr, text)
  return M.wait('a hint at ' .. text, function()
    vim.cmd.redraw()
    return require('stitchcuda.hints').shown(bufnr)[M.line_of(bufnr, text) - 1]
  end)
end

--- The code lenses of a buffer.
---@param bufnr integer
---@return lsp.CodeLens[]
function M.lenses(bufnr)
  if vim.fn.has('nvim-0.12') == 0 then
    return vim.lsp.codelens.get(bufnr)
  end
  return vim.tbl_map(function(found)
    return found.lens
  end, vim.lsp.codelens.get({ bufnr = bufnr }))
end

--- Waits for progress whose message contains `text`, from now on.
---@param text string
---@return fun() wait
function M.progress(text)
  local seen = false
  vim.api.nvim_create_autocmd('LspProgress', {
    callback = function(event)
      local message = event.data.params.value.message
      seen = seen or (message and message:find(text, 1, true) ~= nil)
    end,
  })
  return function()
    M.wait('progress ' .. text, function()
      return seen
    end)
  end
end

--- Waits for a review in the window.
---@return stitchcuda.Review
function M.review()
  return M.wait('a review', function()
    local review = require('stitchcuda.review').list()[1]
    return review and review.tab and review
  end)
end

--- Presses a key of the person's.
---@param keys string
function M.press(keys)
  vim.api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
end

--- The page that is shown, as a text.
---@param name string
---@return string
function M.page(name)
  return M.wait('the page ' .. name, function()
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.startswith(vim.api.nvim_buf_get_name(bufnr), 'stitchcuda://' .. name) then
        return M.text(bufnr)
      end
    end
  end)
end

--- Runs a scenario once Neovim is up, and ends Neovim with how it went.
---@param scenario fun()
function M.run(scenario)
  vim.g.maplocalleader = ','
  local function body()
    vim.lsp.enable('stitchcuda')
    scenario()
    -- An error in an autocommand or a redraw fails no call.
    M.check(vim.v.errmsg == '', 'an error was shown: ' .. vim.v.errmsg)
    for _, client in ipairs(vim.lsp.get_clients()) do
      client:stop()
      M.wait('the server to end', function()
        return client:is_stopped()
      end)
    end
  end
  vim.schedule(function()
    local ok, trouble = xpcall(body, debug.traceback)
    if not ok then
      io.stderr:write(trouble .. '\n')
      io.stderr:write(vim.api.nvim_exec2('messages', { output = true }).output .. '\n')
    end
    vim.cmd(ok and 'qall!' or 'cquit!')
  end)
end

return M
