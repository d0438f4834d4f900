-- Reviews a candidate: the code as it is beside the candidate, in a tab, to be accepted or rejected.
--
-- The server offers a candidate as an edit that wants to be confirmed (`needsConfirmation`), and waits for the answer. The edit is made
-- only over the very text that it was made for.

local options = require('stitchcuda.options')
local ui = require('stitchcuda.ui')

local M = {}

---@class stitchcuda.Review
---@field bufnr integer The code as it is
---@field candidate integer The buffer with the candidate
---@field tab? integer
---@field before string[] The text that the edit is for
---@field edits lsp.TextEdit[]
---@field encoding 'utf-8'|'utf-16'|'utf-32'
---@field title string
---@field evidence string
---@field run? string
---@field client_id integer
---@field answer fun(applied: boolean, reason: string?)

---@type stitchcuda.Review[]
local reviews = {}

---@param bufnr integer
---@return string[]
local function text_of(bufnr)
  return vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
end

---@param review stitchcuda.Review
---@return boolean
function M.is_current(review)
  return vim.api.nvim_buf_is_loaded(review.bufnr) and vim.deep_equal(text_of(review.bufnr), review.before)
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
  for index, other in ipairs(reviews) do
    if other == review then
      table.remove(reviews, index)
      break
    end
  end
  -- Another tab to be in, so that closing works where the review's is the only one.
  if review.tab and vim.api.nvim_tabpage_is_valid(review.tab) then
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(review.tab)) do
      vim.api.nvim_win_call(window, vim.cmd.diffoff)
    end
    if #vim.api.nvim_list_tabpages() > 1 then
      vim.cmd.tabclose(vim.api.nvim_tabpage_get_number(review.tab))
    end
  end
  if vim.api.nvim_buf_is_valid(review.candidate) then
    vim.api.nvim_buf_delete(review.candidate, { force = true })
  end
end

---@param review stitchcuda.Review
---@param applied boolean
---@param reason? string
local function finish(review, applied, reason)
  local answer = review.answer
  -- Once: closing ends in here again.
  review.answer = function() end
  close(review)
  answer(applied, reason)
end

---@param review? stitchcuda.Review
function M.accept(review)
  review = review or M.here()
  if not review then
    return ui.say('there is no candidate to accept here.', vim.log.levels.WARN)
  end
  if not M.is_current(review) then
    local how = review.run and ('`:StitchCuda report %s` has the diff.'):format(review.run) or ''
    return ui.say(
      ('the code has changed since %s was offered, so it was not changed. Undo your changes to accept. %s'):format(
        review.title,
        how
      ),
      vim.log.levels.WARN
    )
  end
  if not vim.bo[review.bufnr].modifiable then
    return ui.say('the file can not be changed (`nomodifiable`).', vim.log.levels.WARN)
  end
  vim.lsp.util.apply_text_edits(review.edits, review.bufnr, review.encoding)
  finish(review, true)
  ui.say(('%s was accepted. Write the file to keep it.'):format(review.title))
end

---@param review? stitchcuda.Review
function M.reject(review)
  review = review or M.here()
  if not review then
    return ui.say('there is no candidate to reject here.', vim.log.levels.WARN)
  end
  finish(review, false, 'rejected')
end

---@param review? stitchcuda.Review
function M.evidence(review)
  review = review or M.here()
  if review and review.run then
    require('stitchcuda.commands').report(review.run)
  else
    ui.say(review and review.evidence or 'there is no candidate here.')
  end
end

---@param review stitchcuda.Review
---@param window integer
---@param text string
local function bar(review, window, text)
  local keys = options.get().review or {}
  local hints = {}
  for _, name in ipairs({ 'accept', 'reject', 'evidence' }) do
    if keys[name] then
      hints[#hints + 1] = ('%s %s'):format(keys[name], name)
      vim.keymap.set('n', keys[name], function()
        M[name](review)
      end, { buffer = review.candidate, desc = 'StitchCUDA: ' .. name })
    end
  end
  local line = ('%s   %s'):format(text, table.concat(hints, '  '))
  vim.wo[window][0].winbar = (line:gsub('%%', '%%%%'))
end

--- A tab with both texts.
---@param review stitchcuda.Review
local function open(review)
  vim.cmd.tabnew()
  review.tab = vim.api.nvim_get_current_tabpage()
  local empty = vim.api.nvim_get_current_buf()
  vim.api.nvim_win_set_buf(0, review.bufnr)
  if vim.api.nvim_buf_is_valid(empty) and empty ~= review.bufnr then
    vim.api.nvim_buf_delete(empty, { force = true })
  end
  vim.cmd.diffthis()
  vim.wo[0][0].winbar = ' as it is'
  vim.cmd('rightbelow vertical split')
  vim.api.nvim_win_set_buf(0, review.candidate)
  vim.cmd.diffthis()
  bar(review, 0, ' candidate: ' .. review.evidence)
  -- To the first change, in both windows.
  vim.cmd.normal({ 'gg', bang = true })
  pcall(vim.cmd.normal, { ']c', bang = true })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = review.candidate,
    once = true,
    callback = function()
      vim.schedule(function()
        finish(review, false, 'the review was closed')
      end)
    end,
  })
end

--- Opens it now, or when the person is done typing: a window that takes over the keyboard would take what is typed for its maps.
---@param review stitchcuda.Review
local function open_when_idle(review)
  if vim.api.nvim_get_mode().mode == 'n' then
    return open(review)
  end
  ui.say(('%s: a candidate is there.'):format(review.title))
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

---@param bufnr integer
---@param edits lsp.TextEdit[]
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return integer candidate
local function candidate_of(bufnr, edits, encoding)
  local candidate = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(candidate, 0, -1, false, text_of(bufnr))
  -- A last line without an end has to look alike in both.
  vim.bo[candidate].endofline = vim.bo[bufnr].endofline
  vim.bo[candidate].fixendofline = vim.bo[bufnr].fixendofline
  vim.lsp.util.apply_text_edits(edits, candidate, encoding)
  vim.bo[candidate].bufhidden = 'wipe'
  vim.bo[candidate].filetype = vim.bo[bufnr].filetype
  vim.bo[candidate].modifiable = false
  return candidate
end

--- What may be reviewed in an edit: the changes of one document, where one of them wants to be confirmed.
---@param edit lsp.WorkspaceEdit
---@return lsp.TextDocumentEdit? change, lsp.ChangeAnnotation? annotation
local function to_confirm(edit)
  local changes = edit.documentChanges or {}
  for _, annotation in pairs(edit.changeAnnotations or {}) do
    if annotation.needsConfirmation and #changes == 1 and changes[1].edits then
      return changes[1], annotation
    end
  end
end

---@type lsp.Handler
function M.on_apply_edit(err, params, ctx)
  local change, annotation = to_confirm(params.edit)
  if not change or not annotation then
    return vim.lsp.handlers['workspace/applyEdit'](err, params, ctx)
  end
  local client = assert(vim.lsp.get_client_by_id(ctx.client_id))
  local bufnr = vim.uri_to_bufnr(change.textDocument.uri)
  local version = change.textDocument.version
  if
    not vim.api.nvim_buf_is_loaded(bufnr)
    or (version and version ~= vim.NIL and version ~= vim.lsp.util.buf_versions[bufnr])
  then
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    ui.say(('%s has changed meanwhile, so nothing was changed. %s'):format(name, annotation.description or ''))
    return { applied = false, failureReason = 'the text has changed' }
  end
  -- The same way of waiting for a person that the built-in handler of `window/showMessageRequest` has.
  local waiting = coroutine.running()
  local review = {
    bufnr = bufnr,
    candidate = candidate_of(bufnr, change.edits, client.offset_encoding),
    before = text_of(bufnr),
    edits = change.edits,
    encoding = client.offset_encoding,
    title = annotation.label,
    evidence = annotation.description or '',
    run = (annotation.description or ''):match('Run (%S+)%.$'),
    client_id = ctx.client_id,
    answer = function(applied, reason)
      vim.schedule(function()
        coroutine.resume(waiting, { applied = applied, failureReason = reason })
      end)
    end,
  }
  reviews[#reviews + 1] = review
  vim.schedule(function()
    open_when_idle(review)
  end)
  return coroutine.yield()
end

--- A server has ended; nobody waits for the answers any more. What was offered can still be taken.
---@param client_id integer
function M.gone(client_id)
  for _, review in ipairs(reviews) do
    if review.client_id == client_id then
      review.answer = function() end
    end
  end
end

--- The open ones.
---@return stitchcuda.Review[]
function M.list()
  return vim.list_extend({}, reviews)
end

return M
