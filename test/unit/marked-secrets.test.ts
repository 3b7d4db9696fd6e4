import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { mark, tracesInFiles, tracesOf } from '../helpers/processes/marked-secrets';
import { temporaryFolder } from '../helpers/temporary-folder';

// Other tests search outputs for secrets. This one proves that the search finds them.
describe('the search for marked secrets', () => {
  const key = `0x${mark()}${mark()}`;
  const password = mark('p@ss"\\ ');
  const encoded = mark('%40%2F%22');
  const seed = Buffer.from(mark()).toString('base64');
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const secrets = { key, password, encoded, seed, pem };

  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  /** Each as it is, and as outputs may have it: escaped, encoded, in other case, cut off. */
  const planted: Record<string, (string | Buffer)[]> = {
    key: [
      key,
      `the key ${key.slice(2)} is bad`,
      key.toUpperCase(),
      `"${Buffer.from(key.slice(2), 'hex').toString('base64')}"`,
      Buffer.from(key.slice(2), 'hex').toString('base64url'),
      `https://n.example/${key.slice(0, 16)}…`,
    ],
    password: [
      Buffer.from(`\0\xff${password}\0`, 'latin1'),
      `http://u:${encodeURIComponent(password)}@h/`,
      JSON.stringify({ password }),
      JSON.stringify({ msg: JSON.stringify({ password }) }),
      ...['user', 'user1'].map((user) => base64(`${user}:${password}`)),
      Buffer.from(password).toString('hex'),
      inspect({ body: Buffer.from(`x${password}`) }),
    ],
    encoded: [decodeURIComponent(encoded), base64(`u:${decodeURIComponent(encoded)}`)],
    seed: [Buffer.from(seed, 'base64').toString('hex')],
    pem: [pem.split('\n')[1] ?? '', JSON.stringify(pem), JSON.stringify(pem.replaceAll('\n', '\\n'))],
  };
  for (const [name, outputs] of Object.entries(planted))
    it(`finds the secret "${name}" in every form`, () => {
      for (const output of outputs) expect(tracesOf(secrets, output), String(output)).to.deep.equal([name]);
    });

  it('finds nothing in other keys, in the PEM header or in a mask', () => {
    const other = generateKeyPairSync('ed25519')
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString();
    expect(tracesOf(secrets, `${other} [secret] ${mark()} BEGIN PRIVATE KEY`)).to.deep.equal([]);
    expect(tracesOf(secrets, Buffer.from(key.slice(2, 8)).toString('hex'))).to.deep.equal([]);
  });

  it('finds secrets in the files of a folder, and skips files older than a given time', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder.path, 'deep'));
    writeFileSync(join(folder.path, 'deep/file'), `x${key}`);
    writeFileSync(join(folder.path, 'clean'), 'x');
    expect(tracesInFiles(secrets, [folder.path])).to.deep.equal([`${join(folder.path, 'deep/file')}: key`]);
    expect(tracesInFiles(secrets, [folder.path], systemTime.now() + 60_000)).to.deep.equal([]);
  });
});
