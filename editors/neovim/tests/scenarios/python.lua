-- A Python file with CUDA in a string: the same as in a CUDA file.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr, client = t.open('m.py')
  t.check(client:_get_language_id(bufnr) == 'python', 'the language id')
  local finding = t.diagnostic(bufnr, 'static/pow-small-exponent')
  local line = vim.api.nvim_buf_get_lines(bufnr, finding.lnum, finding.lnum + 1, false)[1]
  t.check(line:sub(finding.col + 1, finding.end_col):find('^powf'), line)
  t.wait('a code lens', function()
    return t.lenses(bufnr)[1]
  end)
  vim.cmd.write()
  t.check(t.hint(bufnr, '__global__'):find('registers'), 'a hint with registers')
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, '__global__'), 28 })
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local answer = client:request_sync('textDocument/hover', params, 10000, bufnr)
  t.check(answer.result.contents.value:find('registers'), vim.inspect(answer))
end)
