-- Settings change while the server runs: in vim.g, and in a file of the project.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

local severity = { ['static/pow-small-exponent'] = 'warning' }
vim.g.stitchcuda = { settings = { diagnostics = { severity = severity } }, code_lenses = false }

t.run(function()
  local bufnr, client = t.open('e.cu')
  local finding = t.diagnostic(bufnr, 'static/pow-small-exponent')
  t.check(finding.severity == vim.diagnostic.severity.WARN, 'the severity of the first options')
  local function lens_at(line)
    t.wait('a code lens at line ' .. line, function()
      local lens = t.lenses(bufnr)[1]
      return lens and lens.range.start.line == line - 1
    end)
  end
  t.check(#t.lenses(bufnr) == 0, 'no code lens where they are off from the start')
  vim.g.stitchcuda = { settings = { diagnostics = { severity = severity } } }
  lens_at(t.line_of(bufnr, '__global__'))
  -- Turned on later, they follow the text like those that were on from the start: also where the server does not ask for that.
  local refresh = client.handlers['workspace/codeLens/refresh']
  client.handlers['workspace/codeLens/refresh'] = function()
    return vim.NIL
  end
  vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '// a line more' })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = bufnr })
  lens_at(t.line_of(bufnr, '__global__'))
  client.handlers['workspace/codeLens/refresh'] = refresh
  -- After a compile they say what it found, where no hint says that beside them.
  vim.lsp.inlay_hint.enable(false, { bufnr = bufnr })
  vim.cmd.write()
  t.wait('a lens with registers', function()
    local lens = t.lenses(bufnr)[1]
    return lens and lens.command.title:find('registers')
  end)
  vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })

  vim.g.stitchcuda = { settings = { diagnostics = { enable = false } }, code_lenses = false }
  t.wait('no finding', function()
    return #vim.diagnostic.get(bufnr) == 0
  end)
  t.check(#t.lenses(bufnr) == 0, 'no code lens')

  vim.g.stitchcuda = nil
  t.wait('the finding as it is by itself', function()
    local now = vim.diagnostic.get(bufnr)[1]
    return now and now.severity ~= vim.diagnostic.severity.WARN
  end)
  lens_at(t.line_of(bufnr, '__global__'))

  -- Written in this editor, a file with settings holds at once.
  vim.cmd.edit('stitchcuda.toml')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { '[diagnostics.severity]', '"static/*" = "off"' })
  vim.cmd.write()
  t.wait('no finding of a rule', function()
    return not vim.iter(vim.diagnostic.get(bufnr)):any(function(found)
      return vim.startswith(found.code, 'static/')
    end)
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
