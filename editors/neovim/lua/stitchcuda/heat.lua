-- Heat: how much of a program's work each line does, beside the text, as a profile counted it.
--
-- The marks are there only while the text is the one that was profiled: an edit takes them away, an undo brings them back.

local requests = require('stitchcuda.requests')
local ui = require('stitchcuda.ui')

local M = {}

local namespace = vim.api.nvim_create_namespace('stitchcuda.heat')

---@class stitchcuda.HeatLine
---@field line integer From 1
---@field share number Of the work of all lines, from 0 to 1
---@field text string

---@class stitchcuda.Heat
---@field lines stitchcuda.HeatLine[]
---@field text string[] What was profiled
---@field shown boolean
---@field watched boolean
---@field of_server? boolean It is the server's, and no profile

---@type table<integer, stitchcuda.Heat>
local by_buffer = {}

--- Lines below this share are not marked.
local LEAST = 0.01

---@param share number
---@return string
local function highlight(share)
  local steps = { 0.05, 0.2, 0.5 }
  local level = 1
  for index, step in ipairs(steps) do
    if share >= step then
      level = index + 1
    end
  end
  return 'StitchCudaHeat' .. level
end

---@param bufnr integer
local function clear(bufnr)
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
end

---@param bufnr integer
local function draw(bufnr)
  local heat = by_buffer[bufnr]
  clear(bufnr)
  if not heat or not heat.shown then
    return
  end
  if not vim.deep_equal(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), heat.text) then
    return
  end
  for _, line in ipairs(heat.lines) do
    if line.share >= LEAST and line.line <= #heat.text then
      local group = highlight(line.share)
      vim.api.nvim_buf_set_extmark(bufnr, namespace, line.line - 1, 0, {
        sign_text = '▍',
        sign_hl_group = group,
        virt_text = { { ('%2.0f%% %s'):format(line.share * 100, line.text), group } },
        virt_text_pos = 'eol',
        hl_mode = 'combine',
      })
    end
  end
end

---@param bufnr integer
local function watch(bufnr)
  local heat = by_buffer[bufnr]
  if heat.watched then
    return
  end
  heat.watched = true
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, changed)
      if not by_buffer[changed] then
        return true
      end
      clear(changed)
      -- Undone to what was profiled, it is true again.
      vim.schedule(function()
        if vim.api.nvim_buf_is_loaded(changed) then
          draw(changed)
        end
      end)
    end,
    on_detach = function(_, gone)
      by_buffer[gone] = nil
    end,
  })
end

--- Shows heat of the text `text`.
---@param bufnr integer
---@param text string[]
---@param lines stitchcuda.HeatLine[]
function M.set(bufnr, text, lines)
  local old = by_buffer[bufnr]
  by_buffer[bufnr] = { lines = lines, text = text, shown = true, watched = old and old.watched or false }
  watch(bufnr)
  draw(bufnr)
end

--- The numbers that the server has of the text as it is, where no program was profiled: what compilers say of each kernel.
---@param client vim.lsp.Client
---@param bufnr integer
---@param say_nothing_is_there boolean
local function ask(client, bufnr, say_nothing_is_there)
  local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
  requests.ask(client, 'stitchcuda/heat', params, function(found)
    if not vim.api.nvim_buf_is_loaded(bufnr) or found.version ~= vim.lsp.util.buf_versions[bufnr] then
      return
    end
    local lines = {}
    for _, number in ipairs(found.lines) do
      if type(number.heat) == 'number' and number.heat > 0 then
        lines[#lines + 1] = {
          line = number.line + 1,
          share = number.heat,
          text = ('%s %g (%s)'):format(number.label, number.value, number.source),
        }
      end
    end
    M.set(bufnr, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), lines)
    by_buffer[bufnr].of_server = true
    if #lines == 0 and say_nothing_is_there then
      ui.say(
        #found.lines > 0 and 'compilers know of nothing that slows a line of this file down.'
          or 'there are no numbers of this text: save the file to compile it, or `:StitchCuda profile`.'
      )
    end
  end)
end

--- Shows it or hides it.
---@param bufnr integer
function M.toggle(bufnr)
  local heat = by_buffer[bufnr]
  if heat and (heat.shown or not heat.of_server) then
    heat.shown = not heat.shown
    return draw(bufnr)
  end
  local client = requests.client(bufnr)
  if client then
    ask(client, bufnr, true)
  end
end

--- `stitchcuda/job`: after a compile there are new numbers.
---@type lsp.Handler
function M.on_job(_, job, ctx)
  local client = vim.lsp.get_client_by_id(ctx.client_id)
  if not client or job.kind ~= 'compile' or job.state ~= 'done' then
    return
  end
  for bufnr, heat in pairs(by_buffer) do
    if heat.of_server and heat.shown and client.attached_buffers[bufnr] then
      ask(client, bufnr, false)
    end
  end
end

--- The marks that are shown, by line from 1.
---@param bufnr integer
---@return table<integer, string>
function M.shown(bufnr)
  local texts = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true })) do
    texts[mark[2] + 1] = mark[4].virt_text[1][1]
  end
  return texts
end

return M
