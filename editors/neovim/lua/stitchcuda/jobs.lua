-- The server's jobs, as `stitchcuda/job` tells them: what runs, how far it is, how it ended.

local M = {}

--- Finished jobs that are kept.
local MOST_FINISHED = 50

---@class stitchcuda.Job See editors/PROTOCOL.md
---@field client_id integer
---@field id integer The server's number
---@field kind string
---@field title string
---@field state 'queued'|'running'|'done'|'failed'|'cancelled'
---@field stage? string
---@field percentage? integer
---@field message? string Why it failed
---@field seconds? number
---@field told integer When, in milliseconds
---@field run? string
---@field device? string
---@field speedup? number
---@field said? string
---@field answer? string Of a verification
---@field decision? 'open'|'accepted'|'rejected'

---@type stitchcuda.Job[]
local jobs = {}

local function changed()
  vim.api.nvim_exec_autocmds('User', { pattern = 'StitchCudaJobs', modeline = false })
  vim.cmd.redrawstatus()
end

---@param job stitchcuda.Job
---@return boolean
function M.is_over(job)
  return job.state ~= 'queued' and job.state ~= 'running'
end

local function forget_the_oldest()
  local finished = 0
  for index = #jobs, 1, -1 do
    if M.is_over(jobs[index]) then
      finished = finished + 1
      if finished > MOST_FINISHED then
        table.remove(jobs, index)
      end
    end
  end
end

--- `stitchcuda/job`: the job as it is now.
---@type lsp.Handler
function M.on_job(_, told, ctx)
  local job = {}
  for key, value in pairs(told) do
    job[key] = value ~= vim.NIL and value or nil
  end
  job.client_id, job.told = ctx.client_id, vim.uv.now()
  for index, known in ipairs(jobs) do
    if known.client_id == ctx.client_id and known.id == job.id then
      jobs[index] = job
      return changed()
    end
  end
  jobs[#jobs + 1] = job
  forget_the_oldest()
  changed()
end

--- A server has ended, and its jobs with it.
---@param client_id integer
---@return stitchcuda.Job[] lost Those that ran and that a person asked for: compiles come again by themselves
function M.gone(client_id)
  local lost = {}
  for _, job in ipairs(jobs) do
    if job.client_id == client_id and not M.is_over(job) then
      job.state, job.message = 'failed', 'the server ended'
      if job.kind ~= 'compile' then
        lost[#lost + 1] = job
      end
    end
  end
  changed()
  return lost
end

--- All of them, the newest first.
---@return stitchcuda.Job[]
function M.list()
  return vim.iter(jobs):rev():totable()
end

---@return stitchcuda.Job[]
function M.running()
  return vim.tbl_filter(function(job)
    return not M.is_over(job)
  end, M.list())
end

---@param job stitchcuda.Job
function M.cancel(job)
  local client = vim.lsp.get_client_by_id(job.client_id)
  if client then
    client:request('stitchcuda/cancel', { job = job.id }, function() end)
  end
end

--- A job in a line.
---@param job stitchcuda.Job
---@return string
function M.line(job)
  local state = job.state == 'done' and (job.decision or job.answer) or job.state
  local seconds = job.seconds or 0
  if not M.is_over(job) then
    seconds = seconds + (vim.uv.now() - job.told) / 1000
  end
  local parts = { ('%-9s %6.1f s  %d  %s'):format(state, seconds, job.id, job.title) }
  if job.message or (job.stage and not M.is_over(job)) then
    parts[#parts + 1] = ': ' .. (job.message or job.stage):gsub('\n', ' ')
  end
  if job.speedup then
    parts[#parts + 1] = ('  %.2f times better (%s)'):format(job.speedup, job.device or 'unknown device')
  end
  return table.concat(parts)
end

--- What runs, for a status line.
---@return string
function M.status()
  local running = M.running()
  if #running == 0 then
    return ''
  end
  local more = #running > 1 and (' (and %d more)'):format(#running - 1) or ''
  local stage = running[1].stage and (': ' .. running[1].stage) or ''
  return running[1].title .. stage .. more
end

return M
