-- The code is edited while it is optimised: no review, and the text stays as it was typed.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, 'powf'), 4 })
  local measuring = t.progress('measuring the reference')
  vim.cmd('StitchCuda optimize')
  measuring()
  vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '// mine 😀' })
  local typed = t.text(bufnr)
  local shown
  vim.lsp.handlers['window/showMessage'] = function(_, params)
    shown = params.message
    return params
  end
  t.wait('the word that it has changed', function()
    return shown and shown:find('e.cu has changed')
  end)
  t.check(t.text(bufnr) == typed, 'the text is as it was typed')
  t.check(#vim.api.nvim_list_tabpages() == 1, 'no review')
  -- What was found is not lost.
  vim.cmd('StitchCuda report')
  t.check(t.page('report/'):find('x%[i%] %* x%[i%] %* x%[i%]'), 'the run has it')
end)
