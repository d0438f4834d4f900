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
  t.wait_for_message('e.cu has changed while it was optimised')
  t.check(t.text(bufnr) == typed, 'the text is as it was typed')
  t.check(#vim.api.nvim_list_tabpages() == 1, 'no review')
  -- What was found is not lost.
  vim.cmd('StitchCuda review')
  local review = t.review()
  t.check(review.left ~= bufnr and t.text(review.left) .. typed:match('^.-\n') ~= typed, 'the code as it was')
  t.check(t.text(review.candidate):find('x%[i%] %* x%[i%] %* x%[i%]'), 'the candidate')
  t.press(',a')
  t.wait_for_message('so nothing was changed. Undo')
  t.check(t.text(bufnr) == typed, 'the text is as it was typed')
  -- An edit of an older version is refused, and not said to be made.
  local version = vim.lsp.util.buf_versions[bufnr] - 1
  local stale = { textDocument = { uri = vim.uri_from_bufnr(bufnr), version = version }, edits = {} }
  local client = t.attached(bufnr)
  local context = { client_id = client.id, method = 'workspace/applyEdit' }
  local answer = client.handlers['workspace/applyEdit'](nil, { edit = { documentChanges = { stale } } }, context)
  t.check(answer.applied == false and answer.failureReason:find('changed'), vim.inspect(answer))
  -- Undone, it is the code that was optimised.
  vim.api.nvim_buf_call(bufnr, vim.cmd.undo)
  t.press(',a')
  t.wait_for_message('was accepted')
  t.check(t.text(bufnr):find('x%[i%] %* x%[i%] %* x%[i%]'), 'the buffer has the candidate')
end)
