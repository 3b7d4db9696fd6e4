import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { createLifecycle } from '../../service/base/lifecycle';
import { createMetrics } from '../../service/observability/metrics';
import { readDocument } from '../helpers/pages/markdown';
import { findPrometheus, MONITORING } from '../helpers/processes/prometheus';

const NOTHING = { feeds: [], outboxes: [], conditions: [], subscriptions: undefined, issuing: undefined };

const read = (name: string): string => readFileSync(join(MONITORING, name), 'utf8');
const found = (text: string, pattern: RegExp): string[] =>
  [...new Set([...text.matchAll(pattern)].map(([, one = '']) => one))].sort();
const metricsText = (): Promise<string> => createMetrics(createLifecycle())({ ...NOTHING, now: 0 });

describe('deploy/monitoring', () => {
  const alerts = found(read('alerts.yml'), /alert: (\w+)/g);

  it('has alerts that Prometheus accepts, and that fire in time and recover', function () {
    const promtool = findPrometheus('promtool');
    if (promtool === undefined) return this.skip();
    const told = (...args: string[]) => execFileSync(promtool, args, { cwd: MONITORING, encoding: 'utf8' });
    expect(told('check', 'rules', '--lint-fatal', 'alerts.yml')).to.contain('SUCCESS');
    expect(told('check', 'config', '--lint-fatal', 'prometheus.yml')).to.contain('SUCCESS');
    expect(told('test', 'rules', 'alerts.test.yml')).to.contain('SUCCESS');
    expect(found(read('alerts.test.yml'), /alertname: (\w+)/g)).to.deep.equal(alerts);
  });

  it('has a line of docs/operations.md for each alert', () => {
    const page = readDocument('docs/operations.md');
    expect(alerts.map((name) => `docs/operations.md#${name.toLowerCase()}`)).to.deep.equal(
      found(read('alerts.yml'), /runbook: (\S+)/g),
    );
    for (const name of alerts) expect(page.section(name).text.trim(), name).not.to.equal('');
  });

  it('asks for metrics and conditions that the service has, and no others', async () => {
    const text = await metricsText();
    const known = found(text, /^# TYPE (\S+)/gm);
    const conditions = found(text, /etr_conditions\{what="(\w+)"/g);
    for (const name of ['alerts.yml', 'alerts.test.yml', 'dashboard.json']) {
      const asked = found(read(name), /\b((?:etr|nodejs|process)_\w+?)(?:_bucket|_count)?\b/g);
      expect(known, name).to.include.members(asked);
      expect(asked, name).not.to.deep.equal([]);
    }
    const alerted = found(read('alerts.yml'), /what=~?"([\w|]+)"/g).flatMap((kinds) => kinds.split('|'));
    expect(conditions).to.include.members(alerted);
  });

  it('is for counters that end with _total, and for nothing else that does', async () => {
    const types = [...(await metricsText()).matchAll(/^# TYPE (etr_\S+) (\w+)/gm)];
    for (const [, name = '', type] of types)
      expect(name.endsWith('_total'), name).to.equal(type === 'counter');
  });

  it('is for metrics whose names and units follow the conventions of Prometheus', async function () {
    const promtool = findPrometheus('promtool');
    if (promtool === undefined) return this.skip();
    const own = (await metricsText()).split('\n').filter((line) => /^(# \w+ )?etr_/.test(line));
    const input = `${own.join('\n')}\n`;
    expect(execFileSync(promtool, ['check', 'metrics'], { input, encoding: 'utf8' })).to.equal('');
  });
});
