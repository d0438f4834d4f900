-- A program that can't serve: one message that says which, how and what to do, no start, and the same in the health check.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

--- A script in place of the program.
---@param name string
---@param text string
---@param mode string
---@return string path
local function script(name, text, mode)
  local path = vim.fs.joinpath(vim.fn.getcwd(), name)
  vim.fn.writefile(vim.split(text, '\n'), path)
  vim.fn.setfperm(path, mode)
  return path
end

local starts = vim.fs.joinpath(vim.fn.getcwd(), 'starts')
local counted = ('#!/bin/sh\n[ "$1 $2" = "lsp " ] && echo >> %s\n'):format(starts)

t.run(function()
  local cases = {
    -- The wrong libc.
    {
      script('libc', counted .. 'echo "stitchcuda: version GLIBC_2.99 not found" >&2\nexit 127\n', 'rwxr-xr-x'),
      "/libc` can't be run: it ends with status 127: stitchcuda: version GLIBC_2.99 not found.",
    },
    { script('noexec', counted, 'rw-r--r--'), '/noexec` is not executable.' },
    -- A version from before there was a language server.
    {
      script(
        'old',
        counted
          .. "[ $1 = --version ] && { echo 'stitchcuda 0.0.1'; exit; }\n"
          .. 'echo "error: unrecognized subcommand \'lsp\'" >&2\nexit 2\n',
        'rwxr-xr-x'
      ),
      '/old` is too old, or has no language server (stitchcuda 0.0.1): `stitchcuda lsp` ends with status 2: '
        .. "error: unrecognized subcommand 'lsp'.",
    },
    { '/nowhere/stitchcuda', '`/nowhere/stitchcuda` is not to be found.' },
  }
  for _, case in ipairs(cases) do
    local path, expected = unpack(case)
    vim.fn.delete(starts)
    t.said = {}
    vim.g.stitchcuda = { cmd = path }
    vim.lsp.enable('stitchcuda')
    vim.cmd('edit! e.cu')
    local said = t.wait_for_message(vim.pesc(expected))
    t.check(said:find('cmd = ', 1, true) and said:find('cargo xtask install', 1, true), said)
    vim.cmd('edit! scale.py')
    t.pause(500)
    t.check(#t.said == 1, 'one message: ' .. vim.inspect(t.said))
    t.check(not vim.uv.fs_stat(starts), path .. ' was started')
    vim.cmd('StitchCuda optimize')
    t.wait_for_message('`:StitchCuda restart` tries again')
    vim.cmd('checkhealth stitchcuda')
    local health = t.text(0)
    t.check(health:find('❌ ERROR `', 1, true) and health:find(expected, 1, true), health)
    vim.cmd.close()
  end
  -- A program that can serve is taken when it is tried again.
  vim.g.stitchcuda = {}
  vim.cmd('edit! e.cu')
  vim.cmd('StitchCuda restart')
  t.attached(vim.api.nvim_get_current_buf())
end)
