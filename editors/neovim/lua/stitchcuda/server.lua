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
  for group, value in pairs(options.get().settings) do
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

--- The server's settings: those of `vim.g.stitchcuda` over those of `vim.lsp.config`.
---@param of_config? table
---@return table
function M.settings(of_config)
  return vim.tbl_deep_extend('force', vim.empty_dict(), of_config or {}, options.get().settings)
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
end

--- Starts it again where nobody asked it to end.
---@param code integer
---@param signal integer
---@param client_id integer
function M.on_exit(code, signal, client_id)
  vim.schedule(function()
    require('stitchcuda.jobs').gone(client_id)
    local asked = (code == 0 and signal == 0) or signal == 15
    if asked or vim.v.exiting ~= vim.NIL or not vim.lsp.is_enabled('stitchcuda') then
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
  deaths = {}
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
