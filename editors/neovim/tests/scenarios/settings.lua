-- Settings change while the server runs: in vim.g, and in a file of the project.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

vim.g.stitchcuda = { settings = { diagnostics = { severity = { ['static/pow-small-exponent'] = 'warning' } } } }

t.run(function()
  local bufnr = t.open('e.cu')
  local finding = t.diagnostic(bufnr, 'static/pow-small-exponent')
  t.check(finding.severity == vim.diagnostic.severity.WARN, 'the severity of the first options')
  t.wait('a code lens', function()
    return vim.lsp.codelens.get(bufnr)[1]
  end)

  vim.g.stitchcuda = { settings = { diagnostics = { enable = false } }, code_lenses = false }
  t.wait('no finding', function()
    return #vim.diagnostic.get(bufnr) == 0
  end)
  t.check(#vim.lsp.codelens.get(bufnr) == 0, 'no code lens')

  vim.g.stitchcuda = nil
  t.wait('the finding as it is by itself', function()
    local now = vim.diagnostic.get(bufnr)[1]
    return now and now.severity ~= vim.diagnostic.severity.WARN
  end)

  -- Written in this editor, a file with settings holds at once.
  vim.cmd.edit('stitchcuda.toml')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { '[diagnostics.severity]', '"static/*" = "off"' })
  vim.cmd.write()
  t.wait('no finding', function()
    return #vim.diagnostic.get(bufnr) == 0
  end)

  -- Written by another program, as by git, too.
  vim.fn.system({ 'sh', '-c', 'printf "" > new && mv new stitchcuda.toml' })
  t.diagnostic(bufnr, 'static/pow-small-exponent')

  -- Options that are wrong are said, and cost only themselves.
  vim.g.stitchcuda = { cmdd = 'x', heat = 3, settings = { device = 'sim:h200' } }
  t.wait_for_message('`cmdd` is no option')
  t.wait_for_message('`heat` is a number')
  t.check(require('stitchcuda.options').get().heat == true, 'the default')
end)
