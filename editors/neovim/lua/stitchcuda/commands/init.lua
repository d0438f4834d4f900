-- `:StitchCuda`: its subcommands, each with what it completes to.

local jobs = require('stitchcuda.jobs')
local requests = require('stitchcuda.requests')
local ui = require('stitchcuda.ui')

local M = {}

--- How long completion may take, in milliseconds.
local PATIENCE = 2000

---@class stitchcuda.Call
---@field arguments string[]
---@field bufnr integer
---@field first? integer The first line of a range
---@field last? integer
---@field bang boolean

---@class stitchcuda.Subcommand
---@field run fun(call: stitchcuda.Call)
---@field complete? fun(lead: string, before: string[]): string[] `before` are the words before the one that is completed

--- Begins a job about the lines of the call, or about what is at the cursor.
---@param call stitchcuda.Call
---@param name string The server's command
local function begin(call, name)
  local client = requests.client(call.bufnr)
  if not client then
    return
  end
  local argument = {
    uri = vim.uri_from_bufnr(call.bufnr),
    range = requests.range(client, call.bufnr, call.first, call.last),
  }
  requests.execute(client, { command = name, arguments = { argument } }, call.bufnr, requests.begun)
end

--- The jobs as a page that follows them.
local function show_jobs()
  local listed = {}
  local function lines()
    listed = jobs.list()
    local text = vim.tbl_map(jobs.line, listed)
    if #text == 0 then
      return { 'No job has run since Neovim was started. `:StitchCuda report` shows the run before.' }
    end
    return text
  end
  local function at_cursor()
    return listed[vim.api.nvim_win_get_cursor(0)[1]]
  end
  local bufnr = ui.show({
    name = 'jobs',
    lines = lines(),
    maps = {
      c = {
        function()
          local job = at_cursor()
          if job and not jobs.is_over(job) then
            jobs.cancel(job)
          end
        end,
        desc = 'Cancel this job',
      },
      r = {
        function()
          local job = at_cursor()
          if job and job.run then
            M.report(job.run)
          end
        end,
        desc = 'The report of this run',
      },
      ['<cr>'] = {
        function()
          local job = at_cursor()
          if job then
            require('stitchcuda.results').open(job)
          end
        end,
        desc = 'What this job came to: its candidate for review, its plan, its verdict',
      },
    },
  })
  local group = vim.api.nvim_create_augroup('stitchcuda.jobs', {})
  vim.api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'StitchCudaJobs',
    callback = function()
      if not vim.api.nvim_buf_is_loaded(bufnr) then
        return true
      end
      ui.set_lines(bufnr, lines())
    end,
  })
end

---@param call stitchcuda.Call
local function cancel(call)
  local running = jobs.running()
  local wanted = tonumber(call.arguments[1])
  if wanted or call.bang then
    running = vim.tbl_filter(function(job)
      return call.bang or job.id == wanted
    end, running)
  end
  if #running == 0 then
    return ui.say('no such job runs.', vim.log.levels.WARN)
  end
  if #running == 1 or call.bang then
    return vim.iter(running):each(jobs.cancel)
  end
  vim.ui.select(running, { prompt = 'Cancel which job?', format_item = jobs.line }, function(job)
    if job then
      jobs.cancel(job)
    end
  end)
end

local function log()
  local lines = require('stitchcuda.handlers').messages
  ui.show({
    name = 'log',
    lines = vim.list_extend({ 'More is in ' .. vim.lsp.log.get_filename(), '' }, lines),
    filetype = 'log',
  })
  vim.cmd.normal({ 'G', bang = true })
end

---@param run? string
function M.report(run)
  require('stitchcuda.commands.runs').report(run)
end

---@param call stitchcuda.Call
---@param paused boolean
local function pause(call, paused)
  local client = requests.client(call.bufnr)
  if client then
    requests.ask(client, 'stitchcuda/pause', { paused = paused }, function()
      ui.say(paused and 'nothing is compiled by itself; `:StitchCuda resume` goes on.' or 'saved files are compiled.')
    end)
  end
end

---@return string[]
local function running_ids()
  return vim.tbl_map(function(job)
    return tostring(job.id)
  end, jobs.running())
end

--- Files, as they are typed: what separates words is escaped.
---@param lead string
---@return string[]
local function files(lead)
  return vim.tbl_map(function(file)
    return (file:gsub('[ \t\\]', '\\%0'))
  end, vim.fn.getcompletion((lead:gsub('\\(.)', '%1')), 'file'))
end

--- The flags of a command of the program, as its help has them.
---@type table<string, string[]>
local known_flags = {}

---@param command string
---@return string[]
local function flags(command)
  if not known_flags[command] then
    local ran = require('stitchcuda.cli').wait({ command, '--help' }, PATIENCE)
    local found = {}
    for line in vim.gsplit(ran and ran.out or '', '\n', { plain = true }) do
      local flag = line:match('^%s+%-%-[%l-]+') or line:match('^%s+%-%a, (%-%-[%l-]+)')
      if flag then
        found[vim.trim(flag)] = true
      end
    end
    local all = vim.tbl_keys(found)
    table.sort(all)
    known_flags[command] = ran and all or nil
    return all
  end
  return known_flags[command]
end

---@param lead string
---@return string[]
local function runs(lead)
  return require('stitchcuda.commands.runs').complete(lead)
end

---@type table<string, stitchcuda.Subcommand>
local subcommands = {
  optimize = {
    run = function(call)
      begin(call, 'stitchcuda.optimize')
    end,
  },
  plan = {
    run = function(call)
      if call.arguments[1] then
        return require('stitchcuda.commands.runs').plan(call.arguments[1])
      end
      begin(call, 'stitchcuda.plan')
    end,
    complete = runs,
  },
  verify = {
    run = function(call)
      require('stitchcuda.commands.programs').verify(call)
    end,
    -- Files or a version first, then flags; and a version takes none.
    complete = function(lead, before)
      if #before == 0 then
        return vim.list_extend({ 'committed', 'saved' }, files(lead))
      end
      if vim.list_contains({ 'committed', 'saved' }, before[1]) then
        return {}
      end
      if vim.startswith(lead, '-') then
        return flags('verify')
      end
      return #before == 1 and files(lead) or {}
    end,
  },
  profile = {
    run = function(call)
      require('stitchcuda.commands.programs').profile(call)
    end,
    complete = function()
      return flags('profile')
    end,
  },
  import = {
    run = function(call)
      require('stitchcuda.commands.programs').import(call)
    end,
    complete = files,
  },
  heat = {
    run = function(call)
      require('stitchcuda.heat').toggle(call.bufnr)
    end,
  },
  pause = {
    run = function(call)
      pause(call, true)
    end,
  },
  resume = {
    run = function(call)
      pause(call, false)
    end,
  },
  review = {
    run = function(call)
      local client = requests.client(call.bufnr)
      if client then
        require('stitchcuda.commands.runs').choose(call.arguments[1], function(run)
          require('stitchcuda.review').show(client, run)
        end)
      end
    end,
    complete = runs,
  },
  jobs = { run = show_jobs },
  cancel = { run = cancel, complete = running_ids },
  accept = {
    run = function()
      require('stitchcuda.review').accept()
    end,
  },
  reject = {
    run = function()
      require('stitchcuda.review').reject()
    end,
  },
  report = {
    run = function(call)
      M.report(call.arguments[1])
    end,
    complete = runs,
  },
  log = { run = log },
  doctor = {
    run = function()
      require('stitchcuda.commands.programs').doctor()
    end,
  },
  restart = {
    run = function()
      require('stitchcuda.server').restart()
    end,
  },
}

---@return string[]
local function names()
  local all = vim.tbl_keys(subcommands)
  table.sort(all)
  return all
end

--- Runs `:StitchCuda`.
---@param arguments vim.api.keyset.create_user_command.command_args
function M.run(arguments)
  local name = arguments.fargs[1]
  local subcommand = subcommands[name or '']
  if not subcommand then
    local what = name and ('`%s` is no subcommand'):format(name) or 'a subcommand is missing'
    return ui.say(('%s. There are %s.'):format(what, table.concat(names(), ', ')), vim.log.levels.ERROR)
  end
  local has_range = arguments.range > 0
  subcommand.run({
    arguments = vim.list_slice(arguments.fargs, 2),
    bufnr = vim.api.nvim_get_current_buf(),
    first = has_range and arguments.line1 or nil,
    last = has_range and arguments.line2 or nil,
    bang = arguments.bang,
  })
end

--- Completes `:StitchCuda`.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  -- Its name may be shortened, and stands behind a range and modifiers.
  local called, typed = line:match('%f[%a](%u%a*)!?%s+(.*)$')
  if not called or not vim.startswith('StitchCuda', called) then
    return {}
  end
  local name, rest = typed:match('^(%S+)%s+(.*)$')
  if not name then
    return vim.tbl_filter(function(known)
      return vim.startswith(known, lead)
    end, names())
  end
  local subcommand = subcommands[name]
  if not rest or not subcommand or not subcommand.complete then
    return {}
  end
  local before = vim.split(vim.trim(rest:sub(1, #rest - #lead)), '%s+', { trimempty = true })
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, subcommand.complete(lead, before))
end

return M
