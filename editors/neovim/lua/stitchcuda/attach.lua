-- What happens in a buffer that the server is attached to, and when the options change.

local options = require('stitchcuda.options')

local M = {}

--- What the options said of hints last: a person's own switch is left alone until they say something else.
---@type boolean?
local hints

--- What they said of lenses last, for the same reason.
---@type boolean?
local lenses

---@return vim.lsp.Client[]
local function clients()
  return vim.lsp.get_clients({ name = 'stitchcuda' })
end

--- Neovim 0.12 keeps lenses up to date itself.
---@return boolean
local function has_own_lenses()
  return vim.lsp.codelens.enable ~= nil
end

--- Neovim 0.11 shows a lens at the end of its line, where the hint has said the same numbers already.
---@param found lsp.CodeLens[]?
---@param bufnr integer
local function shorten(found, bufnr)
  if not vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr }) then
    return
  end
  for _, lens in ipairs(found or {}) do
    if lens.command and lens.command.command == 'stitchcuda.showKernel' then
      lens.command.title = lens.command.title:match('^.* · (.*)$') or lens.command.title
    end
  end
end

--- Asks for our lenses, and leaves those of other servers to them.
---@param bufnr integer
function M.refresh_lenses(bufnr)
  if not options.get().code_lenses or not vim.api.nvim_buf_is_loaded(bufnr) or has_own_lenses() then
    return
  end
  for _, client in ipairs(vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })) do
    local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
    client:request('textDocument/codeLens', params, function(err, found, ctx)
      -- An answer for an older text would be drawn on other lines; and lenses may be unwanted by now.
      if ctx.version == vim.lsp.util.buf_versions[bufnr] and options.get().code_lenses then
        shorten(found, bufnr)
        vim.lsp.codelens.on_codelens(err, found, ctx)
      end
    end, bufnr)
  end
end

---@param bufnr integer
local function group_of(bufnr)
  return 'stitchcuda.buffer.' .. bufnr
end

--- Shows lenses, or takes them away. Neovim 0.12 has one switch for all lenses of a buffer; 0.11 has those of each server apart.
---@param client vim.lsp.Client
---@param bufnr integer
---@param on boolean
local function turn_lenses(client, bufnr, on)
  if has_own_lenses() then
    vim.lsp.codelens.enable(on, { bufnr = bufnr })
  elseif on then
    M.refresh_lenses(bufnr)
  else
    vim.lsp.codelens.clear(client.id, bufnr)
  end
end

---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  local given = options.get()
  hints, lenses = given.inlay_hints, given.code_lenses
  if hints then
    vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
  end
  require('stitchcuda.hints').follow(bufnr)
  require('stitchcuda.heat').look(client, bufnr)
  if lenses then
    turn_lenses(client, bufnr, true)
  end
  if has_own_lenses() then
    return
  end
  -- Also where lenses are off: they may be turned on later.
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged', 'BufWritePost' }, {
    group = vim.api.nvim_create_augroup(group_of(bufnr), {}),
    buffer = bufnr,
    callback = function()
      M.refresh_lenses(bufnr)
    end,
  })
end

---@param bufnr integer
function M.detach(bufnr)
  pcall(vim.api.nvim_del_augroup_by_name, group_of(bufnr))
  -- Without a server nothing is known of the text, and what was known is not shown on.
  require('stitchcuda.hints').clear(bufnr)
  require('stitchcuda.heat').clear(bufnr)
end

--- `vim.g.stitchcuda` has a new value: gives running servers their settings, and turns what is shown on or off. Where the program or the
--- trust is another, which a server is told of once, it is started anew.
function M.options_changed()
  local server = require('stitchcuda.server')
  if vim.iter(clients()):any(server.is_outdated) then
    return server.restart()
  end
  local given = options.get()
  local hints_turned, lenses_turned = given.inlay_hints ~= hints, given.code_lenses ~= lenses
  hints, lenses = given.inlay_hints, given.code_lenses
  for _, client in ipairs(clients()) do
    client.settings.stitchcuda = server.settings()
    client:notify('workspace/didChangeConfiguration', { settings = client.settings })
    for bufnr in pairs(client.attached_buffers) do
      if hints_turned then
        vim.lsp.inlay_hint.enable(given.inlay_hints, { bufnr = bufnr })
      end
      if lenses_turned then
        turn_lenses(client, bufnr, given.code_lenses)
      else
        M.refresh_lenses(bufnr)
      end
    end
  end
end

return M
