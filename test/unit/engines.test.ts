import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { satisfies } from 'semver';
import { PROJECT_ROOT } from '../../service/base/project-root';

/** The oldest release of Node.js that this project runs on, and the newest of each later LTS line. */
const RELEASES = ['20.19.0', '22.23.0', '24.9.0', '26.12.0'];
/** Works there all the same: its tests of the events that stock SDKs read run on each release. */
const TOO_STRICT: Record<string, readonly string[]> = { '26.12.0': ['node_modules/cloudevents'] };

type Engines = { node?: string } | string[];

function packages(): Record<string, { engines?: Engines }> {
  const lock = readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8');
  return (JSON.parse(lock) as { packages: ReturnType<typeof packages> }).packages;
}

describe('the installed packages', () => {
  for (const release of RELEASES)
    it(`say that they run on Node.js ${release}`, () => {
      const refusing = Object.entries(packages()).flatMap(([path, { engines = {} }]) => {
        const range = Array.isArray(engines) ? undefined : engines.node;
        return range === undefined || satisfies(release, range) ? [] : path;
      });
      expect(refusing).to.deep.equal(TOO_STRICT[release] ?? []);
    });
});
