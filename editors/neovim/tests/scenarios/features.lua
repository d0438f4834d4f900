-- A CUDA file: findings, lenses, hover, numbers after a save, and a quick fix on a line with characters beyond the BMP.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr, client = t.open('e.cu')
  t.check(vim.bo[bufnr].filetype == 'cuda', vim.bo[bufnr].filetype)
  t.check(client:_get_language_id(bufnr) == 'cuda-cpp', 'the language id')

  local finding = t.diagnostic(bufnr, 'static/pow-small-exponent')
  local line = vim.api.nvim_buf_get_lines(bufnr, finding.lnum, finding.lnum + 1, false)[1]
  t.check(line:sub(finding.col + 1, finding.end_col):find('^powf'), line:sub(finding.col + 1, finding.end_col))

  local lens = t.wait('a code lens', function()
    return t.lenses(bufnr)[1]
  end)
  t.check(lens.command.title:find('1 launch'), lens.command.title)

  vim.api.nvim_win_set_cursor(0, { finding.lnum + 1, finding.col })
  local hover = t.wait('a hover', function()
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    local answer = client:request_sync('textDocument/hover', params, 10000, bufnr)
    return answer and answer.result
  end)
  t.check(hover.contents.value:find('static/pow%-small%-exponent'), hover.contents.value)

  -- A save compiles; what the compiler says of the kernel is on its line.
  vim.cmd.write()
  t.check(t.hint(bufnr, '__global__'):find('registers'), 'a hint with registers')
  -- The lens on the same line does not repeat them, unless it is the only one to say them. Neovim 0.12 has it on a line of its own.
  local function lens_is(pattern)
    t.wait('a lens like ' .. pattern, function()
      require('stitchcuda.attach').refresh_lenses(bufnr)
      t.pause(50)
      return t.lenses(bufnr)[1].command.title:find(pattern)
    end)
  end
  lens_is(vim.fn.has('nvim-0.12') == 1 and 'registers .* · 1 launch$' or '^1 launch$')
  vim.lsp.inlay_hint.enable(false, { bufnr = bufnr })
  lens_is('registers .* · 1 launch$')
  vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
  t.hint(bufnr, '__global__')
  -- The lens' command shows the kernel's page.
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, '__global__'), 0 })
  vim.ui.select = function(lenses, _, done)
    t.check(lenses[2].lens.command.title == 'Optimize', vim.inspect(lenses))
    done(lenses[1])
  end
  vim.lsp.codelens.run()
  t.wait('the page of the kernel', function()
    return vim.iter(vim.api.nvim_list_wins()):any(function(window)
      local shown = vim.api.nvim_win_get_buf(window)
      return vim.api.nvim_win_get_config(window).relative ~= '' and t.text(shown):find('energy')
    end)
  end)

  vim.api.nvim_win_set_cursor(0, { finding.lnum + 1, finding.col })
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title:find('not verified') ~= nil
    end,
  })
  t.wait('the fix', function()
    return t.text(bufnr):find('/%* 😀𝒳 %*/ y%[i%] = x%[i%] %* x%[i%] %* x%[i%];  // 𝒳 cubed\n')
  end)
  -- The kernel was edited, so its numbers are gone, until they are compiled anew.
  t.wait('the hint to go', function()
    return next(require('stitchcuda.hints').shown(bufnr)) == nil
  end)
  t.wait('the finding to go', function()
    return #vim.diagnostic.get(bufnr) == 0
  end)
  vim.cmd.write()
  t.hint(bufnr, '__global__')
  -- Neovim's own switch rules.
  vim.lsp.inlay_hint.enable(false, { bufnr = bufnr })
  t.wait('the hint to be hidden', function()
    vim.cmd.redraw()
    return next(require('stitchcuda.hints').shown(bufnr)) == nil
  end)
  vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
  t.hint(bufnr, '__global__')

  -- The server's numbers as heat: with blocks of one warp, half of the warps is idle.
  vim.cmd('%substitute/<<<1, 256>>>/<<<1, 32>>>/')
  vim.cmd.write()
  t.wait('the hint for the other launch', function()
    return t.hint(bufnr, '__global__'):find('50%%')
  end)
  vim.cmd('StitchCuda heat')
  t.wait('heat of the server', function()
    local text = require('stitchcuda.heat').shown(bufnr)[t.line_of(bufnr, '__global__')]
    return text and text:find('occupancy')
  end)
end)
