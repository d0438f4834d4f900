-- Reviews a candidate: the code as it is beside the candidate, in a tab, to be accepted or rejected.
--
-- The server makes the edit, of the version that it knows, and only over the text that the run began with.

local options = require('stitchcuda.options')
local requests = require('stitchcuda.requests')
local ui = require('stitchcuda.ui')

local M = {}

---@class stitchcuda.Review
---@field run string
---@field attempt integer
---@field target string
---@field said string What the candidate gains, and where the numbers are from
---@field bufnr integer The buffer of the file
---@field original string[]
---@field left integer The buffer on the left: the file's, or one with the original where that has changed
---@field candidate integer The buffer on the right
---@field tab? integer

---@type stitchcuda.Review[]
local reviews = {}

---@param bufnr integer
---@return string[]
local function text_of(bufnr)
  return vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
end

--- The lines of a text as a buffer has them.
---@param text string
---@param bufnr integer
---@return string[]
local function lines_of(text, bufnr)
  local ends = vim.bo[bufnr].fileformat == 'dos' and '\r\n' or '\n'
  local lines = vim.split(text, ends, { plain = true })
  -- The end of the last line is none of a line after it.
  if lines[#lines] == '' and #lines > 1 then
    table.remove(lines)
  end
  return lines
end

---@param review stitchcuda.Review
---@return boolean
function M.is_current(review)
  return vim.api.nvim_buf_is_loaded(review.bufnr) and vim.deep_equal(text_of(review.bufnr), review.original)
end

--- The review of this tab, or of this buffer.
---@return stitchcuda.Review?
function M.here()
  local tab, bufnr = vim.api.nvim_get_current_tabpage(), vim.api.nvim_get_current_buf()
  return vim.iter(reviews):find(function(review)
    return review.tab == tab
  end) or vim.iter(reviews):find(function(review)
    return review.bufnr == bufnr
  end)
end

---@param review stitchcuda.Review
local function close(review)
  reviews = vim.tbl_filter(function(other)
    return other ~= review
  end, reviews)
  if review.tab and vim.api.nvim_tabpage_is_valid(review.tab) then
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(review.tab)) do
      vim.api.nvim_win_call(window, vim.cmd.diffoff)
    end
    if #vim.api.nvim_list_tabpages() > 1 then
      vim.cmd.tabclose(vim.api.nvim_tabpage_get_number(review.tab))
    end
  end
  for _, bufnr in ipairs({ review.candidate, review.left }) do
    if bufnr ~= review.bufnr and vim.api.nvim_buf_is_valid(bufnr) then
      vim.api.nvim_buf_delete(bufnr, { force = true })
    end
  end
end

---@param review? stitchcuda.Review
function M.accept(review)
  review = review or M.here()
  if not review then
    return ui.say('there is no candidate to accept here.', vim.log.levels.WARN)
  end
  if not M.is_current(review) then
    return ui.say(
      ('the code has changed since %s was optimised, so nothing was changed. '):format(review.target)
        .. ('Undo your changes to accept, or take the diff from `:StitchCuda report %s`.'):format(review.run),
      vim.log.levels.WARN
    )
  end
  local client = requests.client(review.bufnr)
  if client then
    -- The edit comes as a request of the server's.
    requests.ask(client, 'stitchcuda/accept', { run = review.run, attempt = review.attempt }, function() end)
  end
end

---@param review? stitchcuda.Review
function M.reject(review)
  review = review or M.here()
  if not review then
    return ui.say('there is no candidate to reject here.', vim.log.levels.WARN)
  end
  close(review)
  local client = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = review.bufnr })[1]
  if client then
    requests.ask(client, 'stitchcuda/reject', { run = review.run }, function() end)
  end
end

---@param review? stitchcuda.Review
function M.evidence(review)
  review = review or M.here()
  if review then
    return require('stitchcuda.commands').report(review.run)
  end
  ui.say('there is no candidate here.', vim.log.levels.WARN)
end

--- `workspace/applyEdit`. The built-in handler leaves out an edit of an older version, and says all the same that it was made.
---@type lsp.Handler
function M.on_apply_edit(err, params, ctx)
  for _, change in ipairs(params.edit.documentChanges or {}) do
    local document = change.textDocument
    if document and type(document.version) == 'number' then
      local bufnr = vim.uri_to_bufnr(document.uri)
      if document.version ~= vim.lsp.util.buf_versions[bufnr] then
        return { applied = false, failureReason = 'the text has changed' }
      elseif not vim.bo[bufnr].modifiable then
        return { applied = false, failureReason = 'the buffer is not modifiable' }
      end
    end
  end
  local answer = vim.lsp.handlers['workspace/applyEdit'](err, params, ctx)
  -- Whatever made the text that of the candidate, there is nothing left to decide.
  for _, review in ipairs(reviews) do
    if
      vim.api.nvim_buf_is_loaded(review.bufnr)
      and vim.deep_equal(text_of(review.bufnr), text_of(review.candidate))
    then
      vim.schedule(function()
        close(review)
        ui.say(('the candidate for %s was accepted. Write the file to keep it.'):format(review.target))
      end)
    end
  end
  return answer
end

---@param review stitchcuda.Review
---@param window integer
local function bar(review, window)
  local keys = options.get().review or {}
  local parts = { ' candidate:' }
  for _, name in ipairs({ 'accept', 'reject', 'evidence' }) do
    if keys[name] then
      local leader = vim.g.maplocalleader or '\\'
      parts[#parts + 1] = ('%s %s'):format(keys[name]:gsub('<[Ll]ocal[Ll]eader>', (leader:gsub('%%', '%%%%'))), name)
      vim.keymap.set('n', keys[name], function()
        M[name](review)
      end, { buffer = review.candidate, desc = 'StitchCUDA: ' .. name })
    end
  end
  parts[#parts + 1] = review.said
  -- The keys stay to be seen, however narrow the window is.
  vim.wo[window][0].winbar = (table.concat(parts, '  '):gsub('%%', '%%%%'):gsub('\n', ' ')) .. '%<'
end

--- A tab with both texts.
---@param review stitchcuda.Review
local function open(review)
  vim.cmd.tabnew()
  review.tab = vim.api.nvim_get_current_tabpage()
  local empty = vim.api.nvim_get_current_buf()
  vim.api.nvim_win_set_buf(0, review.left)
  if vim.api.nvim_buf_is_valid(empty) and empty ~= review.left then
    vim.api.nvim_buf_delete(empty, { force = true })
  end
  vim.cmd.diffthis()
  vim.wo[0][0].winbar = review.left == review.bufnr and ' the code as it is' or ' the code as it was'
  vim.cmd('rightbelow vertical split')
  vim.api.nvim_win_set_buf(0, review.candidate)
  vim.cmd.diffthis()
  bar(review, 0)
  -- To the first change, in both windows.
  vim.cmd.normal({ 'gg', bang = true })
  if not vim.deep_equal(text_of(review.left), text_of(review.candidate)) then
    vim.cmd.normal({ ']c', bang = true })
  end
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = review.candidate,
    once = true,
    callback = vim.schedule_wrap(function()
      if vim.list_contains(reviews, review) then
        M.reject(review)
      end
    end),
  })
end

--- Opens it now, or when the person is done typing: a window that takes over the keyboard would take what is typed for its maps.
---@param review stitchcuda.Review
local function open_when_idle(review)
  if vim.api.nvim_get_mode().mode == 'n' then
    return open(review)
  end
  ui.say(('there is a candidate for %s; it is shown in Normal mode.'):format(review.target))
  vim.cmd.redrawstatus()
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n',
    once = true,
    callback = vim.schedule_wrap(function()
      if vim.list_contains(reviews, review) then
        open_when_idle(review)
      end
    end),
  })
end

---@param lines string[]
---@param like integer The buffer of the file
---@return integer bufnr
local function page(lines, like)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'hide'
  -- A last line without an end has to look alike in both.
  vim.bo[bufnr].fixendofline = vim.bo[like].fixendofline
  vim.bo[bufnr].endofline = vim.bo[like].endofline
  ui.set_lines(bufnr, lines)
  vim.bo[bufnr].filetype = vim.bo[like].filetype
  return bufnr
end

--- Shows a candidate of a run: its best.
---@param client vim.lsp.Client
---@param run string
---@param attempt? integer
function M.show(client, run, attempt)
  requests.ask(client, 'stitchcuda/candidate', { run = run, attempt = attempt }, function(found)
    -- One review a run: another attempt takes the place of the one that is shown.
    for _, review in ipairs(vim.list_extend({}, reviews)) do
      if review.run == found.run then
        close(review)
      end
    end
    local bufnr = vim.uri_to_bufnr(found.uri)
    vim.fn.bufload(bufnr)
    vim.bo[bufnr].buflisted = true
    local review = {
      run = found.run,
      attempt = found.attempt,
      target = found.target,
      said = found.said,
      bufnr = bufnr,
      original = lines_of(found.original, bufnr),
      left = bufnr,
      candidate = page(lines_of(found.candidate, bufnr), bufnr),
    }
    vim.bo[review.candidate].bufhidden = 'wipe'
    vim.api.nvim_buf_set_name(review.candidate, ('stitchcuda://%s/candidate'):format(found.run))
    if not M.is_current(review) then
      review.left = page(review.original, bufnr)
    end
    reviews[#reviews + 1] = review
    open_when_idle(review)
  end)
end

--- `stitchcuda/review`: a run ended with something better.
---@type lsp.Handler
function M.on_review(_, offer, ctx)
  local client = vim.lsp.get_client_by_id(ctx.client_id)
  if not client then
    return
  end
  if offer.isCurrent then
    return M.show(client, offer.run, offer.attempt)
  end
  local name = vim.fs.basename(vim.uri_to_fname(offer.uri))
  ui.say(
    ('%s has changed while it was optimised, so nothing was changed. '):format(name)
      .. ('`:StitchCuda review %s` shows what was found. %s'):format(offer.run, offer.said),
    vim.log.levels.WARN
  )
end

--- The open ones.
---@return stitchcuda.Review[]
function M.list()
  return reviews
end

return M
