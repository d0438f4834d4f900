-- Windows of the plugin: text that nobody edits.

local M = {}

---@class stitchcuda.Page
---@field name string What the buffer is called, after `stitchcuda://`
---@field lines string[]
---@field filetype? string
---@field maps? table<string, { [1]: fun(), desc: string }> By key, in normal mode

--- Shows a page in a split, in place of the page of the same name.
---@param page stitchcuda.Page
---@return integer bufnr
function M.show(page)
  local name = 'stitchcuda://' .. page.name
  local bufnr = vim.fn.bufnr('^' .. vim.fn.fnameescape(name) .. '$')
  if bufnr == -1 then
    bufnr = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(bufnr, name)
    vim.bo[bufnr].bufhidden = 'wipe'
    vim.keymap.set('n', 'q', '<cmd>close<cr>', { buffer = bufnr, desc = 'Close' })
  end
  M.set_lines(bufnr, page.lines)
  if vim.fn.bufwinid(bufnr) == -1 then
    vim.cmd.split()
    vim.api.nvim_win_set_buf(0, bufnr)
    vim.wo[0][0].wrap = false
  else
    vim.api.nvim_set_current_win(vim.fn.bufwinid(bufnr))
  end
  vim.bo[bufnr].filetype = page.filetype or 'stitchcuda'
  for key, map in pairs(page.maps or {}) do
    vim.keymap.set('n', key, map[1], { buffer = bufnr, desc = map.desc, nowait = true })
  end
  return bufnr
end

---@param bufnr integer
---@param lines string[]
function M.set_lines(bufnr, lines)
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modified = false
end

---@param text string
---@return string[]
function M.lines(text)
  return vim.split(vim.trim(text) == '' and '' or (text:gsub('\n+$', '')), '\n', { plain = true })
end

---@param text string
---@param level? integer One of `vim.log.levels`
function M.say(text, level)
  vim.notify('StitchCUDA: ' .. text, level or vim.log.levels.INFO)
end

return M
