import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'dotenv';
import { setEnvValue, withValue } from '../../cli/files/env-file';
import { readSettings } from '../../service/config/config';
import { errorOf } from '../helpers/error-of';
import { temporaryFolder } from '../helpers/temporary-folder';

const JSON_VALUE = '{"id":"did:web:localhost%3A3000#keys-1","note":"a # b"}';

describe('setting a variable of an env file', () => {
  describe('the text', () => {
    for (const [before, expected] of [
      [
        '# head\n\nA=1 # one\nNAME=old\n\n# tail\nB="2 3"\n',
        '# head\n\nA=1 # one\nNAME=new\n\n# tail\nB="2 3"\n',
      ],
      ['NAME=old   # why\n', 'NAME=new   # why\n'],
      ['  export NAME=old\n', '  export NAME=new\n'],
      ['A=1', 'A=1\nNAME=new\n'],
      ['', 'NAME=new\n'],
      ['NAME=\nB=2\n', 'NAME=new\nB=2\n'],
      ['#NAME=x\nMY_NAME=y\n', '#NAME=x\nMY_NAME=y\nNAME=new\n'],
      ['NAME_2=z\n', 'NAME_2=z\nNAME=new\n'],
      // One of several assignments stays: another may hold a secret.
      ['NAME=a\nB=1\nNAME=b\n', 'B=1\nNAME=new\n'],
      ['NAME="-----BEGIN\nX=1\n-----END"\nB=2\n', 'NAME=new\nB=2\n'],
      ['A=1\r\nNAME=old\r\n', 'A=1\r\nNAME=new\r\n'],
    ] as const)
      it(`becomes ${JSON.stringify(expected)}`, () => {
        expect(withValue(before, 'NAME', 'new')).to.equal(expected);
      });

    it('does not mistake text inside another value for the variable', () => {
      const before = "PEM='first\nNAME=inside\nlast'\n";
      expect(parse(withValue(before, 'NAME', 'new'))).to.deep.equal({
        PEM: 'first\nNAME=inside\nlast',
        NAME: 'new',
      });
    });

    it('is read back with exactly its value', () => {
      const odd = ['K+X/3c=', "it's", '$HOME and `x`', 'a\\nb', 'back\\', 'two\nlines', ' padded '];
      for (const value of [JSON_VALUE, ...odd])
        expect(parse(withValue('A=1\n# c\n', 'NAME', value))).to.deep.equal({ A: '1', NAME: value });
    });
  });

  describe('the file', () => {
    const folder = temporaryFolder();

    it('is created with its folder, both private to the owner, and without any other file', async () => {
      const path = join(folder.path, 'new/tenant.env');
      await setEnvValue(path, 'DID_KEY_PAIRS', JSON_VALUE);
      expect(statSync(path).mode & 0o777).to.equal(0o600);
      expect(statSync(join(folder.path, 'new')).mode & 0o777).to.equal(0o700);
      expect(readdirSync(join(folder.path, 'new'))).to.deep.equal(['tenant.env']);
      expect(readSettings({ ENV_FILE: path }).settings.DID_KEY_PAIRS).to.equal(JSON_VALUE);
    });

    it('stays as it is when the value cannot be written', async () => {
      const path = join(folder.path, 'kept.env');
      writeFileSync(path, 'A=1\n');
      expect(await errorOf(setEnvValue(path, 'NAME', `'"\`\n`))).to.include({ code: 'ENV_VALUE_UNWRITABLE' });
      expect(readFileSync(path, 'utf8')).to.equal('A=1\n');
    });

    it('is made private if others could read it', async () => {
      const path = join(folder.path, 'open.env');
      writeFileSync(path, 'A=1\n', { mode: 0o644 });
      await setEnvValue(path, 'NAME', 'x');
      expect(statSync(path).mode & 0o777).to.equal(0o600);
    });

    it('stays a symbolic link', async () => {
      const path = join(folder.path, 'link.env');
      writeFileSync(join(folder.path, 'target.env'), 'A=1\n');
      symlinkSync('target.env', path);
      await setEnvValue(path, 'NAME', 'x');
      expect(lstatSync(path).isSymbolicLink()).to.equal(true);
      expect(readFileSync(path, 'utf8')).to.equal('A=1\nNAME=x\n');
    });

    it('has every variable after concurrent writes', async () => {
      const path = join(folder.path, 'many.env');
      const names = Array.from({ length: 10 }, (_, n) => `V${n}`);
      await Promise.all(names.map((name) => setEnvValue(path, name, name)));
      expect(parse(readFileSync(path))).to.deep.equal(Object.fromEntries(names.map((name) => [name, name])));
    });

    it('is written despite the lock of a killed command', async () => {
      const path = join(folder.path, 'locked.env');
      writeFileSync(`${path}.lock`, '');
      utimesSync(`${path}.lock`, 0, 0);
      await setEnvValue(path, 'NAME', 'x');
      expect(parse(readFileSync(path))).to.deep.equal({ NAME: 'x' });
    });

    it('stays as it is if its owner made it read-only, and the error has the remedy', async () => {
      const path = join(folder.path, 'read-only.env');
      writeFileSync(path, 'A=1\n', { mode: 0o444 });
      const thrown = await errorOf(setEnvValue(path, 'NAME', 'x'));
      expect(thrown).to.include({ code: 'FILE_UNWRITABLE', message: `${path} is read-only.` });
      expect(thrown.remedy).to.contain(`\`chmod u+w ${path}\``);
      expect(readFileSync(path, 'utf8')).to.equal('A=1\n');
      expect(readdirSync(folder.path).filter((name) => name.startsWith('read-only'))).to.have.length(1);
    });

    it('is refused with the remedy in a folder that the user may not write to', async function () {
      if (process.platform === 'win32') this.skip();
      const path = join(folder.path, 'closed/tenant.env');
      mkdirSync(join(folder.path, 'closed'), { mode: 0o555 });
      chmodSync(folder.path, 0o755);
      // Modes do not hold root back.
      const isRoot = process.getuid?.() === 0;
      if (isRoot) process.seteuid?.(65534);
      const thrown = await errorOf(setEnvValue(path, 'NAME', 'x')).finally(
        () => isRoot && process.seteuid?.(0),
      );
      expect(thrown).to.include({ code: 'FILE_UNWRITABLE' });
      expect(thrown.remedy).to.contain(`write to ${join(folder.path, 'closed')}`);
    });
  });
});
