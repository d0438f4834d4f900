-- The packed plugin where a person unpacks it, with an init.lua of one line: its own server runs, and compiles.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr = vim.api.nvim_get_current_buf()
  t.attached(bufnr)
  local program = require('stitchcuda.server').find() or ''
  t.check(vim.startswith(program, vim.env.XDG_DATA_HOME) and vim.endswith(program, '/bin/stitchcuda'), program)
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  vim.cmd.write()
  t.check(t.hint(bufnr, '__global__'):find('registers'), 'a hint with registers')
end)
