-- Subcommands that run the program: verify, profile, doctor.

local cli = require('stitchcuda.cli')
local options = require('stitchcuda.options')
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

--- What is under each line of a profile's kernels, as a share of all.
---
--- A line has no time of its own on the simulator; what counts is what it makes the machine do: instructions of warps, sectors, wavefronts
--- of shared memory, and updates that wait.
---@param profile table
---@param path string
---@return stitchcuda.HeatLine[]
function M.heat_of(profile, path)
  local sums, all = {}, 0
  for _, kernel in ipairs(profile.kernels or {}) do
    for _, line in ipairs(kernel.counters.lines or {}) do
      local count = line.count
      local work = count.warps + count.sectors + count.wavefronts + count.serialised
      all = all + work
      if vim.fs.normalize(line.file) == vim.fs.normalize(path) then
        local sum = sums[line.line] or { work = 0, warps = 0, sectors = 0, wavefronts = 0, serialised = 0 }
        sum.work = sum.work + work
        for _, name in ipairs({ 'warps', 'sectors', 'wavefronts', 'serialised' }) do
          sum[name] = sum[name] + count[name]
        end
        sums[line.line] = sum
      end
    end
  end
  local lines = {}
  for number, sum in pairs(sums) do
    local parts = { ('%d instr.'):format(sum.warps) }
    for _, name in ipairs({ 'sectors', 'wavefronts' }) do
      if sum[name] > 0 then
        parts[#parts + 1] = ('%d %s'):format(sum[name], name)
      end
    end
    if sum.serialised > 0 then
      parts[#parts + 1] = ('%d updates wait'):format(sum.serialised)
    end
    lines[#lines + 1] = {
      line = number,
      share = all > 0 and sum.work / all or 0,
      text = ('%s (%s)'):format(table.concat(parts, ', '), profile.device),
    }
  end
  return lines
end

---@param call stitchcuda.Call
function M.profile(call)
  local path = written_file(call.bufnr)
  if not path then
    return
  end
  local text = vim.api.nvim_buf_get_lines(call.bufnr, 0, -1, false)
  local arguments = { 'profile', path, '--format', 'json' }
  vim.list_extend(arguments, call.arguments)
  ui.say(('profiling %s ...'):format(vim.fs.basename(path)))
  cli.run(arguments, function(ran)
    local profile = cli.json(ran)
    if not profile then
      return ui.say(cli.trouble(ran), vim.log.levels.ERROR)
    end
    local lines = M.heat_of(profile, path)
    if options.get().heat and vim.api.nvim_buf_is_loaded(call.bufnr) then
      require('stitchcuda.heat').set(call.bufnr, text, lines)
    end
    local faults = profile.faults or {}
    local level = #faults > 0 and vim.log.levels.WARN or vim.log.levels.INFO
    local said = ('%s on %s: %d kernels'):format(vim.fs.basename(path), profile.device, #(profile.kernels or {}))
    ui.say(
      #faults > 0 and ('%s, %d faults; `stitchcuda profile` names them.'):format(said, #faults) or said .. '.',
      level
    )
  end, vim.fs.dirname(path))
end

---@param call stitchcuda.Call
function M.verify(call)
  local path = written_file(call.bufnr)
  if not path then
    return
  end
  if #call.arguments == 0 then
    return ui.say('say which file is the candidate: `:StitchCuda verify faster.cu`.', vim.log.levels.WARN)
  end
  -- The file in the window is the reference, unless two are named.
  local arguments = vim.tbl_map(vim.fn.expand, call.arguments)
  if not arguments[2] or vim.startswith(arguments[2], '-') then
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
  end)
end

return M
