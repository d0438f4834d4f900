-- `:checkhealth stitchcuda`.

local cli = require('stitchcuda.cli')
local options = require('stitchcuda.options')
local server = require('stitchcuda.server')

local M = {}

local health = vim.health

--- How long the program may take to look at the machine.
local PATIENCE = 30000

local function neovim()
  health.start('StitchCUDA: Neovim')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok(('Neovim %s'):format(tostring(vim.version())))
  else
    health.error('Neovim 0.11 or later is needed.')
  end
  local mistakes = options.mistakes()
  for _, mistake in ipairs(mistakes) do
    health.warn(mistake .. '.', { 'See `:help stitchcuda-options`.' })
  end
  if #mistakes == 0 then
    health.ok('`vim.g.stitchcuda` can be read.')
  end
end

---@return boolean found
local function program()
  health.start('StitchCUDA: program')
  local trouble, version = server.trouble()
  if trouble then
    health.error(trouble, server.remedies)
    return false
  end
  health.ok(('%s (%s)'):format(version, (server.find())))
  return true
end

--- What a server tells of itself.
---@param client vim.lsp.Client
local function status_of(client)
  local status = require('stitchcuda.handlers').status[client.id] or {}
  if status.restricted or not options.is_trusted(client.root_dir) then
    health.info('The workspace is not trusted: only the static rules look at it.')
  end
  if status.paused then
    health.info('Paused: nothing is compiled by itself. `:StitchCuda resume` goes on.')
  end
  for _, what in ipairs({ 'device', 'engine' }) do
    local text = status[what]
    if text then
      local say = vim.startswith(text, 'none: ') and health.warn or health.info
      say(('%s: %s'):format(what, text))
    end
  end
  for _, what in ipairs({ 'toolkit', 'architecture' }) do
    health.info(('%s: %s'):format(what, status[what] or 'known after the first compile'))
  end
  if status.message then
    health.warn(status.message)
  end
end

local function servers()
  health.start('StitchCUDA: language server')
  if not vim.lsp.is_enabled('stitchcuda') then
    health.warn('It is not enabled.', { "Put `vim.lsp.enable('stitchcuda')` into your init.lua." })
  end
  local clients = vim.lsp.get_clients({ name = 'stitchcuda' })
  if #clients == 0 then
    health.info('No server runs. One starts with the first CUDA or Python file.')
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    health.ok(('%s: %d buffers'):format(client.root_dir or 'no workspace', buffers))
    status_of(client)
  end
end

local function machine()
  health.start('StitchCUDA: this machine')
  local ok, running = pcall(vim.system, server.command({ 'doctor', '--format', 'json' }), {
    text = true,
    env = server.environment(),
    cwd = cli.place(),
    timeout = PATIENCE,
  })
  local ran = ok and running:wait() or {}
  local found = cli.json({ code = 0, out = ran.stdout or '', err = '' })
  if not found then
    health.error('`stitchcuda doctor` gave no answer.', { vim.trim(ran.stderr or '') })
    return
  end
  local said = { ok = health.ok, missing = health.error, problem = health.warn, optional = health.info }
  for _, item in ipairs(found.items or {}) do
    local version = item.version and (' ' .. item.version) or ''
    local path = item.path and ('\n' .. item.path) or ''
    local text = ('%s%s: %s%s'):format(item.name, version, item.detail, path)
    local say = said[item.status] or health.info
    if (item.status == 'missing' or item.status == 'problem') and item.remedy then
      say(text, { item.why, item.remedy })
    else
      say(text .. (item.remedy and ('\n' .. item.remedy) or ''))
    end
  end
end

function M.check()
  neovim()
  if program() then
    servers()
    machine()
  end
end

return M
