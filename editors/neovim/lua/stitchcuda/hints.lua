-- Draws the server's inlay hints.
--
-- Neovim asks for them and decides whether they are on (`vim.lsp.inlay_hint.enable()`), but keeps the hints of all servers of a buffer
-- under one version: when one server has answered for a new text and the other not yet, hints of the old text are drawn at columns
-- that may no longer be there, which is an error. So ours are kept apart, in a namespace of their own.

local M = {}

local namespace = vim.api.nvim_create_namespace('stitchcuda.hints')

---@param label string|lsp.InlayHintLabelPart[]
---@return string
local function text_of(label)
  if type(label) == 'string' then
    return label
  end
  local parts = vim.tbl_map(function(part)
    return part.value
  end, label)
  return table.concat(parts)
end

---@param client vim.lsp.Client
---@param bufnr integer
---@param hint lsp.InlayHint
local function draw(client, bufnr, hint)
  local row = hint.position.line
  local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  if not line then
    return
  end
  local column = vim.str_byteindex(line, client.offset_encoding, hint.position.character, false)
  local text = (hint.paddingLeft and ' ' or '') .. text_of(hint.label) .. (hint.paddingRight and ' ' or '')
  vim.api.nvim_buf_set_extmark(bufnr, namespace, row, column, {
    virt_text = { { text, 'StitchCudaHint' } },
    virt_text_pos = 'inline',
    undo_restore = false,
  })
end

---@type lsp.Handler
function M.on_hints(err, result, ctx)
  local bufnr = ctx.bufnr
  local client = vim.lsp.get_client_by_id(ctx.client_id)
  if err or not client or not vim.api.nvim_buf_is_loaded(bufnr) then
    return
  end
  -- The text has changed since it was asked; the answer for the new text is on its way.
  if ctx.version ~= vim.lsp.util.buf_versions[bufnr] or not vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr }) then
    return
  end
  M.clear(bufnr)
  for _, hint in ipairs(result or {}) do
    draw(client, bufnr, hint)
  end
end

---@param bufnr integer
---@param first? integer First line, from 0
---@param last? integer The line after the last
function M.clear(bufnr, first, last)
  if vim.api.nvim_buf_is_loaded(bufnr) then
    vim.api.nvim_buf_clear_namespace(bufnr, namespace, first or 0, last or -1)
  end
end

--- The texts of the hints that are shown, by line from 0.
---@param bufnr integer
---@return table<integer, string>
function M.shown(bufnr)
  local texts = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true })) do
    texts[mark[2]] = mark[4].virt_text[1][1]
  end
  return texts
end

---@type table<integer, true>
local followed = {}

--- Withdraws the hint of a line when the line is edited, without waiting for the server.
---@param bufnr integer
function M.follow(bufnr)
  if followed[bufnr] then
    return
  end
  followed[bufnr] = true
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, changed, _, first, _, last)
      M.clear(changed, first, last)
    end,
    on_detach = function(_, gone)
      followed[gone] = nil
    end,
  })
end

-- Neovim's switch has no event; it redraws.
vim.api.nvim_set_decoration_provider(namespace, {
  on_win = function(_, _, bufnr)
    if not vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr }) and next(M.shown(bufnr)) then
      vim.schedule(function()
        M.clear(bufnr)
      end)
    end
    return false
  end,
})

return M
