import perfHooks from 'node:perf_hooks';
import { expect, test, vi } from 'vitest';
import { counted, merged, openMetrics, summed } from './metrics.ts';

/** A process that has answered this many requests, in 30 ms each, and has something waiting. */
async function figures(answered: number, waiting: number) {
  const metrics = openMetrics();
  metrics.gauge('waiting', 'What waits.', () => waiting);
  for (let request = 0; request < answered; request++) metrics.answered('chat', '/chat', 200, 30);
  return structuredClone(await metrics.figures()); // as another process gets them
}

test('counters, histograms and gauges of several processes are added, and their help says so', async () => {
  const text = await summed([await figures(2, 5), await figures(3, 1)]);
  expect(text).toContain('# HELP dragoman_requests_total Requests answered. Sum over all processes.');
  expect(text).toContain('dragoman_requests_total{face="chat",route="/chat",status="200"} 5');
  expect(text).toContain('dragoman_request_seconds_bucket{le="0.02",face="chat",route="/chat"} 0');
  expect(text).toContain('dragoman_request_seconds_bucket{le="0.1",face="chat",route="/chat"} 5');
  expect(text).toContain('dragoman_request_seconds_count{face="chat",route="/chat"} 5');
  expect(text).toContain('waiting 6');
  expect(text).toMatch(/# HELP nodejs_eventloop_lag_max_seconds .*\. Maximum over all processes\./);
});

test('what processes that have ended counted still counts, and what they had does not', async () => {
  const gone = await merged([await merged([counted(await figures(2, 5)), counted(await figures(1, 5))]), counted(await figures(1, 5))]);
  const text = await summed([gone, await figures(3, 1)]);
  expect(text).toContain('dragoman_requests_total{face="chat",route="/chat",status="200"} 7');
  expect(text).toContain('dragoman_request_seconds_count{face="chat",route="/chat"} 7');
  expect(text).toContain('waiting 1');
});

test('several servers of a process count for themselves, and what watches the process is there once', async () => {
  const watched = vi.spyOn(perfHooks, 'monitorEventLoopDelay');
  const [one, other] = [openMetrics(), openMetrics()];
  expect(watched.mock.calls.length).toBeLessThanOrEqual(1);
  one.answered('chat', '/chat', 200, 30);
  expect(await one.text()).toContain('dragoman_requests_total{face="chat",route="/chat",status="200"} 1');
  expect(await other.text()).not.toContain('dragoman_requests_total{face="chat"');
  for (const metrics of [one, other]) expect(await metrics.text()).toMatch(/^nodejs_eventloop_lag_max_seconds \d/m);
});
