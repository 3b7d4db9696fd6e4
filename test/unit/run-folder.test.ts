import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeRunFolder } from '../../devnet/place';
import { temporaryFolder } from '../helpers/temporary-folder';

describe('the folder of a devnet run', () => {
  const parent = temporaryFolder();

  it('is new; folders of ended runs are removed, and those of running ones stay', () => {
    const running = join(parent.path, String(process.ppid));
    const ended = join(parent.path, '999999999');
    for (const folder of [running, ended]) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'service.env'), 'X=1');
    }
    const folder = makeRunFolder(parent.path);
    expect(readdirSync(folder)).to.deep.equal([]);
    expect(existsSync(running)).to.equal(true);
    expect(existsSync(ended)).to.equal(false);
  });
});
