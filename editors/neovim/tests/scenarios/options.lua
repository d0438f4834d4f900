-- Options as the program gets them, and what becomes of a server that dies again and again.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local server = require('stitchcuda.server')
  vim.g.stitchcuda = {
    cmd = { 'nice', 'stitchcuda' },
    settings = {
      device = 'sim:h200',
      nvcc = { extraFlags = { '-DX=a b', '-O2' } },
      compile = { onSave = false },
      diagnostics = { severity = { ['static/*'] = 'off' } },
    },
  }
  t.check(vim.deep_equal(server.command({ 'lsp' }), { 'nice', 'stitchcuda', 'lsp' }), 'a command line')
  local variables = server.environment()
  t.check(variables.STITCHCUDA_DEVICE == 'sim:h200', vim.inspect(variables))
  t.check(variables.STITCHCUDA_NVCC_EXTRA_FLAGS == "'-DX=a b' '-O2'", vim.inspect(variables))
  t.check(variables.STITCHCUDA_COMPILE_ON_SAVE == 'false', vim.inspect(variables))
  -- Those of `vim.lsp.config` too, and below those of `vim.g.stitchcuda`, as the server has them.
  vim.lsp.config('stitchcuda', { settings = { stitchcuda = { device = 'cpu', optimize = { attempts = 3 } } } })
  variables = server.environment()
  t.check(variables.STITCHCUDA_DEVICE == 'sim:h200', vim.inspect(variables))
  t.check(variables.STITCHCUDA_OPTIMIZE_ATTEMPTS == '3', vim.inspect(variables))

  vim.g.stitchcuda = function()
    return { cmd = '/opt/stitchcuda', review = { accept = false } }
  end
  t.check(vim.deep_equal(server.command({}), { '/opt/stitchcuda' }), 'a path')
  local review = require('stitchcuda.options').get().review
  t.check(review.accept == false and review.reject == '<localleader>r', vim.inspect(review))

  -- A program that is not there is said by the health check, with what to do.
  vim.cmd('checkhealth stitchcuda')
  local health = t.text(0)
  t.check(health:find('/opt/stitchcuda` is not to be found', 1, true), health)
  t.check(health:find('cargo xtask install', 1, true), health)
  vim.cmd.enew()
  -- And by the commands that would run it.
  vim.cmd('StitchCuda doctor')
  t.wait_for_message('`/opt/stitchcuda` could not be started')

  -- One that can't be trusted, or whose trust can't be told, is not.
  local options = require('stitchcuda.options')
  for _, case in ipairs({
    { nil, true },
    { true, true },
    { false, false },
    {
      function()
        error('no')
      end,
      false,
    },
    {
      function(root)
        return root == '/mine'
      end,
      true,
    },
  }) do
    vim.g.stitchcuda = function()
      return { trusted = case[1] }
    end
    t.check(options.is_trusted('/mine') == case[2], vim.inspect(case))
  end

  -- Killed again and again, it is left alone in the end, and that is said.
  vim.g.stitchcuda = {}
  local bufnr = t.open('e.cu')
  for _ = 1, 5 do
    local client = t.attached(bufnr)
    vim.uv.kill(vim.api.nvim_get_proc_children(vim.fn.getpid())[1], 'sigkill')
    t.wait('the end of the server', function()
      return vim.lsp.get_client_by_id(client.id) == nil
    end)
  end
  t.wait_for_message('ended by signal 9 and is not started again')
  t.pause(300)
  t.check(#vim.lsp.get_clients() == 0, 'no server')
  vim.cmd('StitchCuda restart')
  t.attached(bufnr)
end)
