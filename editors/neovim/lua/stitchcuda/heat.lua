-- Heat: the server's numbers of each line, beside the text: what the program moves there, where it was profiled, and which kernels leave
-- warps idle or spill.
--
-- The server keeps what holds of the text as it is now; an edit takes the marks away until it has answered for the new text.

local requests = require('stitchcuda.requests')
local ui = require('stitchcuda.ui')

local M = {}

local namespace = vim.api.nvim_create_namespace('stitchcuda.heat')

--- Milliseconds without an edit before the server is asked again.
local REST = 200

---@class stitchcuda.Heat
---@field edits integer

--- The buffers that show heat.
---@type table<integer, stitchcuda.Heat>
local shown_in = {}

--- Those in which the person has hidden it.
---@type table<integer, true>
local hidden_in = {}

--- The servers that have profiled something, or imported a profile.
---@type table<integer, true>
local profiled = {}

--- The numbers of a line that only a profile gives.
local OF_A_PROFILE = { traffic = true, gpu_time = true, sample_share = true, access_excess = true }

---@class stitchcuda.Number A number of a line; see editors/PROTOCOL.md
---@field line integer From 0
---@field quantity string
---@field label string
---@field value number
---@field unit string
---@field heat? number From 0 to 1
---@field source string

--- Seconds in the unit that leaves something before the point.
local DURATIONS = { { 1, 's' }, { 1e-3, 'ms' }, { 1e-6, 'µs' }, { 1e-9, 'ns' } }

---@param value number
---@param unit 'count'|'bytes'|'ratio'|'seconds'
---@return string
local function quantity(value, unit)
  if unit == 'ratio' then
    return ('%.0f%%'):format(value * 100)
  elseif unit == 'seconds' then
    local size = vim.iter(DURATIONS):find(function(known)
      return value >= known[1]
    end) or DURATIONS[#DURATIONS]
    return ('%.3g %s'):format(value / size[1], size[2])
  end
  return ('%g%s'):format(value, unit == 'bytes' and ' bytes' or '')
end

---@param number stitchcuda.Number
---@return string
local function text_of(number)
  local value = quantity(number.value, number.unit)
  -- `64% of what the program moves`, but `theoretical occupancy 50%`.
  local first, second = number.label, value
  if vim.startswith(number.label, 'of ') then
    first, second = value, number.label
  end
  return ('%s %s (%s)'):format(first, second, number.source)
end

---@param heat number
---@return string
local function highlight(heat)
  return 'StitchCudaHeat' .. math.max(1, math.ceil(heat * 4))
end

--- Takes the marks away, until there are numbers again.
---@param bufnr integer
function M.clear(bufnr)
  if vim.api.nvim_buf_is_loaded(bufnr) then
    vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

---@param bufnr integer
---@param numbers stitchcuda.Number[]
---@return integer count Of lines that are marked
local function draw(bufnr, numbers)
  ---@type table<integer, stitchcuda.Number>
  local hottest = {}
  for _, number in ipairs(numbers) do
    local known = hottest[number.line]
    if type(number.heat) == 'number' and number.heat > 0 and (not known or known.heat < number.heat) then
      hottest[number.line] = number
    end
  end
  M.clear(bufnr)
  for line, number in pairs(hottest) do
    local group = highlight(number.heat)
    vim.api.nvim_buf_set_extmark(bufnr, namespace, line, 0, {
      sign_text = '▍',
      sign_hl_group = group,
      virt_text = { { text_of(number), group } },
      virt_text_pos = 'eol',
      hl_mode = 'combine',
    })
  end
  return vim.tbl_count(hottest)
end

---@param bufnr integer
---@param asked boolean A person asked, and is told where there is nothing
local function ask(bufnr, asked)
  local client = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
  if not client then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
  requests.ask(client, 'stitchcuda/heat', params, function(found)
    local current = vim.api.nvim_buf_is_loaded(bufnr) and found.version == vim.lsp.util.buf_versions[bufnr]
    if not shown_in[bufnr] or not current then
      return
    end
    if draw(bufnr, found.lines) == 0 and asked then
      ui.say(
        #found.lines > 0 and 'nothing is known that slows a line of this file down; `:StitchCuda profile` looks closer.'
          or 'there are no numbers of this text: save the file to compile it, or `:StitchCuda profile`.'
      )
    end
  end)
end

---@param bufnr integer
local function follow(bufnr)
  local heat = shown_in[bufnr]
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, changed)
      if shown_in[changed] ~= heat then
        return true
      end
      M.clear(changed)
      heat.edits = heat.edits + 1
      local edits = heat.edits
      vim.defer_fn(function()
        if shown_in[changed] == heat and heat.edits == edits then
          ask(changed, false)
        end
      end, REST)
    end,
    on_detach = function(_, gone)
      shown_in[gone], hidden_in[gone] = nil, nil
    end,
  })
end

---@param bufnr integer
---@param asked boolean
local function show(bufnr, asked)
  hidden_in[bufnr] = nil
  if not shown_in[bufnr] then
    shown_in[bufnr] = { edits = 0 }
    follow(bufnr)
  end
  ask(bufnr, asked)
end

--- Shows it or hides it.
---@param bufnr integer
function M.toggle(bufnr)
  if shown_in[bufnr] then
    shown_in[bufnr], hidden_in[bufnr] = nil, true
    return M.clear(bufnr)
  end
  if requests.client(bufnr) then
    show(bufnr, true)
  end
end

--- Shows it where a profile speaks of a buffer: what is imported may speak of many, and of some that are opened later.
---@param client vim.lsp.Client
---@param bufnr integer
function M.look(client, bufnr)
  if not profiled[client.id] or hidden_in[bufnr] or not require('stitchcuda.options').get().heat then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
  client:request('stitchcuda/heat', params, function(err, found)
    local speaks = not err
      and vim.iter(found.lines):any(function(number)
        return OF_A_PROFILE[number.quantity]
      end)
    if speaks and vim.api.nvim_buf_is_loaded(bufnr) then
      show(bufnr, false)
    end
  end, bufnr)
end

--- `stitchcuda/job`: after a profile or a compile there are new numbers.
---@type lsp.Handler
function M.on_job(_, job, ctx)
  local client = vim.lsp.get_client_by_id(ctx.client_id)
  if not client or job.state ~= 'done' then
    return
  end
  if job.kind == 'compile' then
    for bufnr in pairs(shown_in) do
      ask(bufnr, false)
    end
  elseif job.kind == 'profile' then
    profiled[client.id] = true
    local about = type(job.uri) == 'string' and vim.uri_to_bufnr(job.uri) or nil
    for bufnr in pairs(client.attached_buffers) do
      if bufnr ~= about then
        M.look(client, bufnr)
      elseif require('stitchcuda.options').get().heat then
        show(bufnr, true)
      end
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
