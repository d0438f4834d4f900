-- A selection is optimised by a model behind an endpoint, to an accepted candidate.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local name = vim.env.STITCHCUDA_TEST_FILE
  local bufnr = t.open(name)
  local first, last = t.line_of(bufnr, vim.env.STITCHCUDA_TEST_FIRST), t.line_of(bufnr, vim.env.STITCHCUDA_TEST_LAST)
  -- As a person does it: lines are selected, and the code action is taken.
  vim.api.nvim_win_set_cursor(0, { first, 0 })
  vim.cmd(('normal! %dGV%dG'):format(first, last))
  vim.lsp.buf.code_action({
    apply = true,
    context = { only = { 'refactor.rewrite' }, diagnostics = {} },
    filter = function(action)
      return vim.startswith(action.title, 'Optimize')
    end,
  })
  vim.cmd.normal({ vim.keycode('<esc>'), bang = true })
  t.review()
  t.press(',a')
  t.wait_for_message('was accepted')
  vim.cmd.write()
end)
