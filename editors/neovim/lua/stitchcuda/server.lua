-- The program: where it is, how it is started as a server, and what happens when it dies.

local options = require('stitchcuda.options')

local M = {}

--- So many deaths in so many milliseconds, and it is not started again.
local MOST_DEATHS, WITHIN = 5, 180000

---@type integer[]
local deaths = {}

--- The program that was built with the plugin.
---@return string
local function bundled()
  local here = debug.getinfo(1, 'S').source:sub(2)
  local root = vim.fn.fnamemodify(here, ':p:h:h:h')
  return vim.fs.joinpath(root, 'bin', vim.fn.has('win32') == 1 and 'stitchcuda.exe' or 'stitchcuda')
end

--- The command line with these arguments.
---@param arguments string[]
---@return string[]
function M.command(arguments)
  local cmd = options.get().cmd
  if type(cmd) == 'table' then
    return vim.list_extend(vim.deepcopy(cmd), arguments)
  end
  if type(cmd) == 'string' then
    return vim.list_extend({ vim.fs.normalize(cmd) }, arguments)
  end
  local beside = bundled()
  local is_there = vim.fn.executable(beside) == 1
  return vim.list_extend({ is_there and beside or 'stitchcuda' }, arguments)
end

--- The program, where it can be run.
---@return string? path, string name
function M.find()
  local name = M.command({})[1]
  local path = vim.fn.exepath(name)
  return path ~= '' and path or nil, name
end

--- How long the program may take to say what it is, in milliseconds.
local LONGEST_PROBE = 30000

--- What a command ends with, where it ends badly: how, and the first line that it said.
---@param arguments string[]
---@return string? trouble, string out
local function probe(arguments)
  local ok, ran = pcall(function()
    return vim.system(M.command(arguments), { text = true, timeout = LONGEST_PROBE }):wait()
  end)
  if not ok then
    return ('could not be started: %s'):format(vim.split(tostring(ran), '\n')[1]), ''
  end
  local said = vim.split(vim.trim(ran.stderr or ''), '\n')[1]
  local how = ran.signal ~= 0 and ('ends by signal %d'):format(ran.signal) or ('ends with status %d'):format(ran.code)
  local is_bad = ran.code ~= 0 or ran.signal ~= 0
  return is_bad and (said ~= '' and how .. ': ' .. said or how) or nil, vim.trim(ran.stdout or '')
end

--- Why the program can't even be started, in a sentence; nil where it can.
---@return string?
local function missing()
  local path, name = M.find()
  if path then
    return nil
  end
  local named = vim.fs.normalize(name)
  if vim.uv.fs_stat(named) then
    return ('`%s` is not executable.'):format(named)
  end
  return ('`%s` is not to be found.'):format(name)
end

--- Why the program can't serve, in a sentence; nil where it can.
---@return string? trouble, string version
function M.trouble()
  local trouble = missing()
  if trouble then
    return trouble, ''
  end
  local path = M.find()
  local failed, version = probe({ '--version' })
  if failed then
    return ("`%s` can't be run: it %s."):format(path, (failed:gsub('%.$', ''))), ''
  end
  failed = probe({ 'lsp', '--help' })
  if failed then
    local text = '`%s` is too old, or has no language server (%s): `stitchcuda lsp` %s.'
    return text:format(path, version, (failed:gsub('%.$', ''))), version
  end
  return nil, version
end

--- What to do about a program that can't serve.
M.remedies = {
  'Build it in a checkout of StitchCUDA: `cargo xtask install --nvim`.',
  "Or say where it is: `vim.g.stitchcuda = { cmd = '/path/to/stitchcuda' }`.",
}

--- What was said of a program that can't serve; until it is tried again.
---@type string?
M.refused = nil

--- Leaves a program alone that can't serve: one that fails at every file says so at every file.
---@param trouble string
---@return string text For the person
local function refuse(trouble)
  M.refused = trouble
  vim.lsp.enable('stitchcuda', false)
  return ('StitchCUDA: %s %s Then `:StitchCuda restart`.'):format(trouble, table.concat(M.remedies, ' '))
end

--- The program that was seen to be able to serve.
---@type string?
local able

--- The command line of each server that runs.
---@type table<vim.lsp.rpc.PublicClient, string[]>
local started = setmetatable({}, { __mode = 'k' })

--- Starts the program as a server; one that was not seen before is looked at first. What is wrong is said by the client that asks.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
function M.start(dispatchers)
  local path = M.find()
  local trouble = (not path or path ~= able) and M.trouble()
  if trouble then
    error(refuse(trouble), 0)
  end
  able, M.refused = path, nil
  local command = M.command({ 'lsp' })
  local rpc = vim.lsp.rpc.start(command, dispatchers)
  started[rpc] = command
  return rpc
end

--- The server's settings: those of `vim.g.stitchcuda` over those of `vim.lsp.config`.
---@param of_config? table Those of `vim.lsp.config`, where they are known
---@return table
function M.settings(of_config)
  of_config = of_config or ((vim.lsp.config.stitchcuda or {}).settings or {}).stitchcuda
  return vim.tbl_deep_extend('force', vim.empty_dict(), of_config or {}, options.get().settings)
end

--- The settings as the environment of a command: `nvcc.extraFlags` is `STITCHCUDA_NVCC_EXTRA_FLAGS`. Tables have no variable, and
--- only say what findings look like.
---@return table<string, string>
function M.environment()
  local variables = {}
  local function add(name, value)
    if type(value) == 'table' then
      local words = vim.tbl_map(vim.fn.shellescape, value)
      value = #words > 0 and table.concat(words, ' ') or nil
    end
    if value ~= nil then
      local variable = name:gsub('%u', '_%0'):gsub('%.', '_'):upper()
      variables['STITCHCUDA_' .. variable] = tostring(value)
    end
  end
  for group, value in pairs(M.settings()) do
    if type(value) == 'table' then
      for key, inner in pairs(value) do
        add(group .. '.' .. key, inner)
      end
    else
      add(group, value)
    end
  end
  return variables
end

---@param params lsp.InitializeParams
---@param config vim.lsp.ClientConfig
function M.before_init(params, config)
  -- In place: the client has this very table as its settings, and sends them once it is initialised.
  config.settings.stitchcuda = M.settings(config.settings.stitchcuda)
  params.initializationOptions = vim.tbl_extend('force', params.initializationOptions or {}, {
    settings = config.settings.stitchcuda,
    workspaceTrusted = options.is_trusted(config.root_dir),
  })
  config.init_options = params.initializationOptions
end

--- Whether the options now name another program than the one of a server, or another trust than it was told.
---@param client vim.lsp.Client
---@return boolean
function M.is_outdated(client)
  local command = started[client.rpc]
  local told = (client.config.init_options or {}).workspaceTrusted
  return (command ~= nil and not vim.deep_equal(command, M.command({ 'lsp' })))
    or (told ~= nil and told ~= options.is_trusted(client.root_dir))
end

--- Tells what ended with a server, whoever ended it.
---@param lost stitchcuda.Job[]
local function tell_lost(lost)
  if #lost == 0 then
    return
  end
  local titles, kept = {}, ''
  for _, job in ipairs(lost) do
    titles[#titles + 1] = job.title
    kept = job.run and ' What a run had found until then is kept: see `:StitchCuda report`.' or kept
  end
  local text = 'The server of StitchCUDA ended, and with it: %s.%s'
  vim.notify(text:format(table.concat(titles, ', '), kept), vim.log.levels.WARN)
end

--- Starts it again where nobody asked it to end.
---@param code integer
---@param signal integer
---@param client_id integer
function M.on_exit(code, signal, client_id)
  vim.schedule(function()
    local lost = require('stitchcuda.jobs').gone(client_id)
    if vim.v.exiting ~= vim.NIL then
      return
    end
    tell_lost(lost)
    local asked = (code == 0 and signal == 0) or signal == 15
    if asked or not vim.lsp.is_enabled('stitchcuda') then
      return
    end
    local how = signal ~= 0 and ('by signal %d'):format(signal) or ('with status %d'):format(code)
    local now = vim.uv.now()
    deaths = vim.tbl_filter(function(time)
      return now - time < WITHIN
    end, deaths)
    deaths[#deaths + 1] = now
    if not options.get().restart or #deaths >= MOST_DEATHS then
      local text = 'The server of StitchCUDA ended %s and is not started again. '
        .. '`:StitchCuda restart` starts it, `:StitchCuda log` shows what it said.'
      vim.notify(text:format(how), vim.log.levels.ERROR)
      return
    end
    vim.notify(('The server of StitchCUDA ended %s and is started again.'):format(how), vim.log.levels.WARN)
    vim.lsp.enable('stitchcuda')
  end)
end

--- Stops it, and starts it for all its buffers.
function M.restart()
  deaths, able, M.refused = {}, nil, nil
  local clients = vim.lsp.get_clients({ name = 'stitchcuda' })
  for _, client in ipairs(clients) do
    client:stop()
  end
  local timer = assert(vim.uv.new_timer())
  local waited = 0
  timer:start(0, 50, function()
    waited = waited + 50
    local all_gone = vim.iter(clients):all(function(client)
      return client.rpc.is_closing()
    end)
    if all_gone or waited > 5000 then
      timer:close()
      vim.schedule(function()
        vim.lsp.enable('stitchcuda')
      end)
    end
  end)
end

return M
