import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { freePort } from '../../../devnet/place';
import { inheritedEnvironment } from '../../../service/config/config';
import { PROJECT_ROOT } from '../../../service/base/project-root';
import { systemTime } from '../../../service/base/time';
import { newFolderOfServer, serve } from '../database/postgres';
import { eventually } from '../eventually';
import { owned } from '../resources';

/** The folder of alerts and dashboards. */
export const MONITORING = join(PROJECT_ROOT, 'deploy', 'monitoring');

/** A running Prometheus. */
export interface Prometheus extends AsyncDisposable {
  /** The names of the alerts that are firing. */
  firing(this: void): Promise<string[]>;
  /**
   * The time series that a query gives of all that was scraped. Rejects with the error of a query that
   * cannot be answered.
   */
  query(this: void, query: string): Promise<Series[]>;
  stop(): void;
}

/** A time series, without its values. */
interface Series {
  metric: Record<string, string>;
}

/** Each interval. A scrape must be answered within it. */
const INTERVAL = '500ms';

/** A program of Prometheus. If it is not installed, this is printed and the result is undefined. */
export function findPrometheus(name: 'prometheus' | 'promtool'): string | undefined {
  const folders = (inheritedEnvironment().PATH ?? '').split(delimiter);
  const program = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (program === undefined) console.log(`${name} is not installed: what needs it is skipped.`);
  return program;
}

/**
 * Starts Prometheus with the alerts of `deploy/monitoring`, scraping a service. If it is not installed, this
 * is printed and the result is undefined.
 *
 * @param changed changes the text of the alerts.
 */
export async function startPrometheus(
  serviceUrl: string,
  changed: (alerts: string) => string,
): Promise<Prometheus | undefined> {
  const program = findPrometheus('prometheus');
  if (program === undefined) return undefined;
  const options = await newFolderOfServer();
  const begun = systemTime.now() / 1000;
  const alerts = readFileSync(join(MONITORING, 'alerts.yml'), 'utf8');
  const settings = readFileSync(join(MONITORING, 'prometheus.yml'), 'utf8')
    .replace(/_interval: .*/g, `_interval: ${INTERVAL}`)
    .replace('service:3000', new URL(serviceUrl).host);
  const files = { 'prometheus.yml': settings, 'alerts.yml': changed(alerts) };
  for (const [name, content] of Object.entries(files)) {
    const path = join(options.cwd, name);
    writeFileSync(path, content);
    if (options.uid !== undefined && options.gid !== undefined) chownSync(path, options.uid, options.gid);
  }
  const url = `http://127.0.0.1:${await freePort(0)}`;
  const { host } = new URL(url);
  const flags = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', '--log.level=warn'];
  const server = serve([program, `--web.listen-address=${host}`, ...flags], options);
  const ask = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${url}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: T; error?: string };
    if (error !== undefined) throw new Error(error);
    return data;
  };
  await eventually('Prometheus answers', async () => {
    if (/level=error/.test(server.output())) throw new Error(server.output());
    return ask('status/runtimeinfo').catch(() => undefined);
  });
  const prometheus: Omit<Prometheus, keyof AsyncDisposable> = {
    async firing() {
      type Alert = { labels: { alertname: string }; state: string };
      const { alerts } = await ask<{ alerts: Alert[] }>('alerts');
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
    },
    async query(query) {
      const range = { query, start: String(begun), end: String(systemTime.now() / 1000), step: '1' };
      const { result } = await ask<{ result: Series[] }>(
        `query_range?${new URLSearchParams(range).toString()}`,
      );
      return result;
    },
    stop: server.stop,
  };
  return owned(`Prometheus at ${host}`, prometheus, 'stop');
}
