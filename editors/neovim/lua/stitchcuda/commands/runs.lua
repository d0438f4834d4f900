-- What runs of `optimize` leave: their plans and reports.

local cli = require('stitchcuda.cli')
local ui = require('stitchcuda.ui')

local M = {}

--- How long completion may take.
local PATIENCE = 2000

---@param listed table?
---@return table[] summaries The newest first
local function newest_first(listed)
  return vim.iter(listed and listed.runs or {}):rev():totable()
end

---@param lead string
---@return string[]
function M.complete(lead)
  local ids = vim.tbl_map(function(run)
    return run.id
  end, newest_first(cli.json(cli.wait({ 'runs', 'list', '--format', 'json' }, PATIENCE))))
  return vim.tbl_filter(function(id)
    return vim.startswith(id, lead)
  end, ids)
end

--- The run that is meant: the one that is named, else the last of the file in the window, else the last of all.
---@param named? string
---@param done fun(id: string)
function M.choose(named, done)
  if named then
    return done(named)
  end
  local file = vim.fs.basename(vim.api.nvim_buf_get_name(0))
  cli.run({ 'runs', 'list', '--format', 'json' }, function(ran)
    local all = newest_first(cli.json(ran))
    local of_file = vim.iter(all):find(function(run)
      return file ~= '' and vim.fs.basename((run.target:gsub('::.*$', ''))) == file
    end)
    local run = of_file or all[1]
    if run then
      done(run.id)
    else
      ui.say('there are no runs yet; `:StitchCuda optimize` begins one.')
    end
  end)
end

--- Shows what is known of a run, with the diff of its best attempt.
---@param named? string
function M.report(named)
  M.choose(named, function(id)
    cli.run({ 'runs', 'show', id }, function(ran)
      if ran.code ~= 0 then
        return ui.say(cli.trouble(ran), vim.log.levels.ERROR)
      end
      ui.show({ name = 'report/' .. id, lines = ui.lines(ran.out), filetype = 'diff' })
    end)
  end)
end

---@param lines string[]
---@param label string
---@param text string?
local function add(lines, label, text)
  if text and text ~= '' then
    for index, line in ipairs(vim.split(text, '\n', { plain = true })) do
      lines[#lines + 1] = '   ' .. (index == 1 and label or '') .. line
    end
  end
end

--- The tasks of a plan, each with what became of it.
---@param index integer Of the plan, from 0
---@param entry table
---@param attempts table[]
---@return string[]
local function plan_lines(index, entry, attempts)
  local lines = { ('Plan %d'):format(index + 1) .. (entry.reason and (': ' .. entry.reason) or ''), '' }
  vim.list_extend(lines, vim.split(entry.plan.summary or '', '\n', { plain = true }))
  for number, task in ipairs(entry.plan.tasks) do
    vim.list_extend(lines, { '', ('%d. %s'):format(number, task.title) })
    add(lines, '', task.description)
    add(lines, 'expected: ', task.expectedGain)
    add(lines, 'test: ', task.test)
    for _, attempt in ipairs(attempts) do
      if attempt.plan == index and attempt.task == number - 1 then
        add(lines, ('attempt %d: '):format(attempt.number), attempt.said)
      end
    end
  end
  return lines
end

--- Shows the plans of a run, also of one that is at work.
---@param named? string
function M.plan(named)
  M.choose(named, function(id)
    cli.run({ 'runs', 'show', id, '--format', 'json' }, function(ran)
      local run = cli.json(ran)
      if ran.code ~= 0 or not run then
        return ui.say(cli.trouble(ran), vim.log.levels.ERROR)
      end
      local attempts = vim.tbl_filter(function(entry)
        return entry.entry == 'attempt'
      end, run.history)
      local lines, count = { ('%s on %s'):format(run.manifest.target, run.manifest.device), '' }, 0
      for _, entry in ipairs(run.history) do
        if entry.entry == 'plan' then
          vim.list_extend(lines, plan_lines(count, entry, attempts))
          lines[#lines + 1] = ''
          count = count + 1
        end
      end
      if count == 0 then
        lines[#lines + 1] = 'No plan was written yet.'
      end
      ui.show({ name = 'plan/' .. id, lines = lines })
    end)
  end)
end

return M
