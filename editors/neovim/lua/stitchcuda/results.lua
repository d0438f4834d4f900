-- What jobs come to that nobody has to decide about: a plan, a verdict. They are said, and shown beside the text.

local requests = require('stitchcuda.requests')
local ui = require('stitchcuda.ui')

local M = {}

--- Jobs whose end was told, by client and number.
---@type table<string, true>
local told = {}

---@param lines string[]
---@param title string
---@param items string[]
local function section(lines, title, items)
  if #items > 0 then
    vim.list_extend(lines, { '', title })
    for _, item in ipairs(items) do
      for index, line in ipairs(vim.split(item, '\n', { plain = true })) do
        lines[#lines + 1] = (index == 1 and '  ' or '    ') .. line
      end
    end
  end
end

--- A verdict as a page.
---@param job stitchcuda.Job
---@param verdict table As `stitchcuda verify --format json` prints it
---@return string[]
local function verdict_lines(job, verdict)
  local lines = vim.split(job.said or verdict.answer, '\n', { plain = true })
  section(
    lines,
    'What was found',
    vim.tbl_map(function(found)
      local advice = type(found.advice) == 'string' and ('\n' .. found.advice) or ''
      return ('%s[%s]: %s%s'):format(found.severity, found.code, found.message, advice)
    end, verdict.findings)
  )
  section(
    lines,
    'Compared',
    vim.tbl_map(function(one)
      local differ = one.different > 0 and (', %d differ'):format(one.different) or ''
      return ('%s: %d values%s; inputs %s'):format(one.what, one.count, differ, one.inputs)
    end, verdict.compared)
  )
  section(lines, 'Not checked', verdict.notChecked)
  section(lines, 'Notes', verdict.notes)
  return lines
end

--- Shows a page and leaves the cursor where it is.
---@param page stitchcuda.Page
local function beside(page)
  local window = vim.api.nvim_get_current_win()
  ui.show(page)
  if vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_set_current_win(window)
  end
end

--- Shows what a job came to: its candidate, its plan, its verdict.
---@param job stitchcuda.Job
function M.open(job)
  local client = vim.lsp.get_client_by_id(job.client_id)
  if client and job.answer then
    requests.ask(client, 'stitchcuda/verdict', { job = job.id }, function(verdict)
      beside({ name = 'verdict', lines = verdict_lines(job, verdict) })
    end)
  elseif job.kind == 'plan' and job.run then
    require('stitchcuda.commands.runs').plan(job.run)
  elseif client and job.run then
    require('stitchcuda.review').show(client, job.run)
  end
end

--- `stitchcuda/job`: says what came of a plan or a verification, once, and shows it where nothing is being typed.
---@type lsp.Handler
function M.on_job(_, job, ctx)
  local is_result = job.kind == 'plan' or job.kind == 'verify'
  local key = ('%d/%d'):format(ctx.client_id, job.id)
  if not is_result or job.state ~= 'done' or told[key] then
    return
  end
  told[key] = true
  local is_good = job.kind == 'plan' or job.answer == 'correct'
  ui.say(job.said or (job.title .. ' is done.'), is_good and vim.log.levels.INFO or vim.log.levels.WARN)
  if vim.api.nvim_get_mode().mode == 'n' then
    M.open(vim.tbl_extend('force', job, { client_id = ctx.client_id }))
  end
end

return M
