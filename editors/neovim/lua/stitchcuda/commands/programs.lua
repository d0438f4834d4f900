-- Subcommands that run the program: verify, profile, doctor; and import, which reads what a profiler wrote.

local cli = require('stitchcuda.cli')
local options = require('stitchcuda.options')
local requests = require('stitchcuda.requests')
local ui = require('stitchcuda.ui')

local M = {}

--- The file of a buffer, written: what is run is what lies on the disk.
---@param bufnr integer
---@return string? path
local function written_file(bufnr)
  local path = vim.api.nvim_buf_get_name(bufnr)
  if path == '' or vim.bo[bufnr].buftype ~= '' then
    ui.say('the buffer is no file.', vim.log.levels.WARN)
    return nil
  end
  if vim.bo[bufnr].modified then
    ui.say('write the file first; what is on the disk is run.', vim.log.levels.WARN)
    return nil
  end
  local client = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
  local root = client and client.root_dir or vim.fs.root(path, { 'stitchcuda.toml', 'compile_commands.json', '.git' })
  if not options.is_trusted(root) then
    ui.say('the workspace is not trusted, so none of its programs is run.', vim.log.levels.WARN)
    return nil
  end
  return path
end

--- Without flags the server profiles, as a job, and the lines get heat; with flags the program does, and its report is shown.
---@param call stitchcuda.Call
function M.profile(call)
  if #call.arguments == 0 then
    local client = requests.client(call.bufnr)
    if client then
      local command = { command = 'stitchcuda.profile', arguments = { vim.uri_from_bufnr(call.bufnr) } }
      requests.execute(client, command, call.bufnr, requests.begun)
    end
    return
  end
  if not vim.startswith(call.arguments[1], '-') then
    return ui.say('`profile` is about the file of this window, and takes flags only.', vim.log.levels.WARN)
  end
  local path = written_file(call.bufnr)
  if not path then
    return
  end
  ui.say(('profiling %s ...'):format(vim.fs.basename(path)))
  cli.run(vim.list_extend({ 'profile', path }, call.arguments), function(ran)
    ui.show({ name = 'profile', lines = ui.lines(ran.out .. ran.err) })
  end, vim.fs.dirname(path))
end

--- The server reads what a profiler wrote elsewhere, as a job, and the lines that it speaks of get heat.
---@param call stitchcuda.Call
function M.import(call)
  if #call.arguments == 0 then
    return ui.say('say which file: `:StitchCuda import report.ncu-rep`.', vim.log.levels.WARN)
  end
  local client = requests.client(call.bufnr)
  if client then
    local file = vim.fs.abspath(vim.fn.expand(table.concat(call.arguments, ' ')))
    local command = { command = 'stitchcuda.importProfile', arguments = { vim.uri_from_fname(file) } }
    requests.execute(client, command, call.bufnr, requests.begun)
  end
end

--- The server verifies, as a job: another file, or the text of now against what was saved or committed.
---@param call stitchcuda.Call
---@param against string
local function verify_here(call, against)
  local client = requests.client(call.bufnr)
  if not client then
    return
  end
  local argument = {
    uri = vim.uri_from_bufnr(call.bufnr),
    range = requests.range(client, call.bufnr, call.first, call.last),
  }
  if against == 'saved' or against == 'committed' then
    argument.reference = against
  else
    argument.candidate = vim.uri_from_fname(vim.fs.abspath(vim.fn.expand(against)))
  end
  requests.execute(client, { command = 'stitchcuda.verify', arguments = { argument } }, call.bufnr, requests.begun)
end

--- What is verified: files, or a version, before the first flag.
---@param arguments string[]
---@return string[] named, string? trouble
local function named_in(arguments)
  local named = {}
  for _, argument in ipairs(arguments) do
    if vim.startswith(argument, '-') then
      break
    end
    named[#named + 1] = argument
  end
  local is_version = named[1] == 'saved' or named[1] == 'committed'
  if #named == 0 then
    return named, 'say against what, before any flag: `:StitchCuda verify faster.cu`, `saved` or `committed`.'
  elseif is_version and #arguments > 1 then
    return named, ('`%s` takes nothing more; for flags name files.'):format(named[1])
  elseif #named > 2 then
    return named, 'at most two files are verified: a reference and a candidate. Flags come after them.'
  end
  return named
end

--- With flags, or with two files, the program verifies, and its report is shown.
---@param call stitchcuda.Call
function M.verify(call)
  local named, trouble = named_in(call.arguments)
  if trouble then
    return ui.say(trouble, vim.log.levels.WARN)
  end
  if #call.arguments == 1 then
    return verify_here(call, call.arguments[1])
  end
  local path = written_file(call.bufnr)
  if not path then
    return
  end
  -- The file in the window is the reference, unless two are named.
  local arguments = vim.tbl_map(vim.fn.expand, call.arguments)
  if #named == 1 then
    table.insert(arguments, 1, path)
  end
  ui.say(('verifying %s ...'):format(arguments[2]))
  cli.run(vim.list_extend({ 'verify' }, arguments), function(ran)
    local lines = ui.lines(ran.out)
    if vim.trim(ran.err) ~= '' then
      vim.list_extend(lines, ui.lines(ran.err))
    end
    ui.show({ name = 'verify', lines = lines })
  end, vim.fn.getcwd())
end

function M.doctor()
  cli.run({ 'doctor' }, function(ran)
    ui.show({ name = 'doctor', lines = ui.lines(vim.trim(ran.out) ~= '' and ran.out or cli.trouble(ran)) })
  end, cli.place())
end

return M
