import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect } from 'chai';
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

  const planted: [string, string, string | Buffer][] = [
    ['key', 'as it is', key],
    ['key', 'without 0x, in a sentence', `the key ${key.slice(2)} is bad`],
    ['key', 'in upper case', key.toUpperCase()],
    ['key', 'as bytes in base64', `"${Buffer.from(key.slice(2), 'hex').toString('base64')}"`],
    ['key', 'as bytes in base64url', Buffer.from(key.slice(2), 'hex').toString('base64url')],
    ['key', 'cut off', `https://n.example/${key.slice(0, 16)}…`],
    ['password', 'as it is', Buffer.from(`\0\xff${password}\0`, 'latin1')],
    ['password', 'percent-encoded', `http://u:${encodeURIComponent(password)}@h/`],
    ['password', 'escaped for JSON', JSON.stringify({ password })],
    ['password', 'escaped twice', JSON.stringify({ msg: JSON.stringify({ password }) })],
    ['password', 'in a Basic header', Buffer.from(`user:${password}`).toString('base64')],
    [
      'password',
      'in a Basic header with a longer user name',
      Buffer.from(`user1:${password}`).toString('base64'),
    ],
    ['password', 'in hex', Buffer.from(password).toString('hex')],
    ['password', 'in a dump of bytes', inspect({ body: Buffer.from(`x${password}`) })],
    ['encoded', 'decoded', decodeURIComponent(encoded)],
    [
      'encoded',
      'decoded, in a Basic header',
      Buffer.from(`u:${decodeURIComponent(encoded)}`).toString('base64'),
    ],
    ['seed', 'as bytes in hex', Buffer.from(seed, 'base64').toString('hex')],
    ['pem', 'in a single line of it', pem.split('\n')[1] ?? ''],
    ['pem', 'on one line', JSON.stringify(pem)],
    ['pem', 'with line endings that are escaped twice', JSON.stringify(pem.replaceAll('\n', '\\n'))],
  ];
  for (const [name, how, output] of planted) {
    it(`finds the secret "${name}" ${how}`, () => expect(tracesOf(secrets, output)).to.deep.equal([name]));
  }

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
    expect(tracesInFiles(secrets, [folder.path], Date.now() + 60_000)).to.deep.equal([]);
    folder.remove();
  });
});
