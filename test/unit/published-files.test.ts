import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { BILL_OF_LADING_CONTEXT, PUBLISHED_FILES, readContextFile } from '../../service/base/published-files';

/**
 * A change needs a new file with a new version: documents that were signed under one of these must keep
 * their meaning.
 */
const NEVER_CHANGED: Record<string, string> = {
  'attachments-context.json': '346302247e4c7c22bba974fa2aba1ef633a855fec4c36d96d59c00df46d658aa',
  'bill-of-lading-v1.json': '037b6f04e4581ca6ccfa008c261278e7a7d7ebaae6413ce038ac62ea522d0477',
  'bill-of-lading-v1.schema.json': '6d550be4649f7b5d067638e617c448c62c8104c16e454bc8a3d9a25dbb7a1419',
  'render-method-context-v2.json': 'f46d2b5ea5c7333be0d6e583c10a218bca20368e29ec33c39b55c5c51023c276',
  'transferable-records-context.json': 'ddaacc170bdd8ca1c1d0dd79cd71da6536adffc1e38cfb0b30093debe37edc52',
  'trustvc-bill-of-lading.json': 'bd55d88af3b02c0f1ae52a2d49a1533338035a7d474d6224ad4c4f890f525c77',
};

describe('the context files', () => {
  it('are these, and keep every byte', () => {
    const hashed = readdirSync(join(PROJECT_ROOT, 'contexts')).map((file) => [
      file,
      createHash('sha256').update(readContextFile(file)).digest('hex'),
    ]);
    expect(Object.fromEntries(hashed)).to.deep.equal(NEVER_CHANGED);
  });

  it('are published under versioned names only, and stay published', () => {
    expect(Object.keys(PUBLISHED_FILES))
      .to.include('bill-of-lading-v1.json')
      .and.include(BILL_OF_LADING_CONTEXT);
    for (const file of Object.keys(PUBLISHED_FILES)) {
      expect(file).to.match(/-v\d+(\.schema)?\.json$/);
      expect(readContextFile(file)).not.to.have.length(0);
    }
  });
});

describe('a context at an unknown URL', () => {
  it('is refused by the document loader', async () => {
    const url = 'https://cdn.example/bill-of-lading-v2.json';
    const failure = await createDocumentLoader(url)(url).catch((error: unknown) => error);
    expect(failure).to.have.property('code', 'CONTEXT_UNKNOWN');
  });
});
