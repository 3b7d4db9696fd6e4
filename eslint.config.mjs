import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

/** Forbids files of one folder to import what the patterns match: imports show the direction of the data. */
const direction = (files, patterns, message) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns: [{ group: patterns, message }] }] },
});

const ISSUING = ['**/http/**', '**/issuance/**', '**/minting/**', '**/journal/**'];
const DELIVERING = ['**/watcher/**', '**/outbox/**', '**/delivery/**'];
const READING = ['**/did/**', '**/evidence/**', '**/token/**', '**/validation/**', '**/verification/**'];
/** What opens a private key of the wallet or of the issuer. */
const OPENS_KEYS = [
  { name: 'ethers', importNames: ['Wallet', 'SigningKey'] },
  { name: '@digitalbazaar/ecdsa-multikey' },
].map((one) => ({ ...one, message: 'Only service/keys/ has private keys: ask its signers.' }));
/** The folder of the registry's contracts, except for some leaves. */
const registryBut = (...leaves) => ['**/registry/**', ...leaves.map((leaf) => `!**/registry/${leaf}`)];
/** The check of evidence stands above the service. */
const ABOVE_EVIDENCE = ['check-*', 'evidence', 'evidence-page', 'statements'].map(
  (name) => `**/evidence/${name}`,
);
const COMPOSITION = ['**/composition/**', '**/service/main'];
/** The folders above: they start or observe the others. */
const ABOVE = [...COMPOSITION, '**/observability/**'];
/** What evidence and verification know nothing of. */
const BESIDE_READING = [
  '**/http/**',
  '**/minting/**',
  '**/journal/**',
  ...DELIVERING,
  '**/database/**',
  ...ABOVE,
];
/** Both lines, and what is above and below them. */
const LINES_AND_CHAIN = [
  ...[...ISSUING, ...DELIVERING, ...READING, ...ABOVE],
  ...['**/registry/**', '**/database/**', '**/chain/**'],
];

const EVERYWHERE = [
  { selector: 'ImportDeclaration[source.value=/^(node:)?process$/]', message: 'Use the global process.' },
  {
    selector: "ImportDeclaration[source.value='zod'] > ImportSpecifier",
    message: "Import * as z: the bundles then leave out zod's messages in 40 languages.",
  },
];
/** All ways to read or await the machine's time. */
const REAL_TIME = [
  'CallExpression[callee.name=/^set(Timeout|Interval)$/]',
  'MemberExpression[object.name=/^(Date|performance)$/][property.name="now"]',
  'MemberExpression[object.name="AbortSignal"][property.name="timeout"]',
  // A test may say what time it is; it may not measure time.
  'MemberExpression[object.name="systemTime"][property.name=/^(elapsed|later)$/]',
  'ImportDeclaration[source.value=/timers.promises$/] > ImportSpecifier[imported.name=/^set(Timeout|Interval)$/]',
].map((selector) => ({ selector, message: 'Use the time that is passed in. CONTRIBUTING.md, Time' }));

export default tseslint.config(
  {
    ignores: [
      'artifacts',
      'cache',
      'client/api-types.ts',
      'coverage',
      'deploy/deployments',
      'dist',
      'node_modules',
      'typechain-types',
    ],
  },
  eslint.configs.recommended,
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      // An implementation of an asynchronous interface may have nothing to wait for.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // Prettier wraps neither strings nor comments.
      'max-len': ['error', { code: 110, comments: 110, ignoreUrls: true, ignoreRegExpLiterals: true }],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Settings are read in config.ts alone.' },
      ],
      'no-restricted-syntax': ['error', ...EVERYWHERE],
    },
  },
  {
    files: ['evidence/**/*.ts', 'service/**/*.ts', 'test/**/*.ts'],
    ignores: ['service/base/time.ts', 'service/main.ts', 'test/{soak,screenshots}/**'],
    rules: { 'no-restricted-syntax': ['error', ...EVERYWHERE, ...REAL_TIME] },
  },
  {
    files: ['console/**'],
    languageOptions: { parserOptions: { project: './console/tsconfig.json' } },
  },
  {
    // The last file runs commands in the tests' process, with settings of their own.
    files: ['service/config/config.ts', 'receiver/main.ts', 'test/helpers/processes/tdoc-in-process.ts'],
    rules: { 'no-restricted-properties': 'off' },
  },
  direction(
    ['service/http/**'],
    [
      ...DELIVERING,
      '!**/outbox/deliveries',
      '!**/outbox/enqueue-stored',
      ...READING,
      ...registryBut('token-id-forms'),
      '**/chain/**',
      '**/minting/**',
      '**/database/**',
      ...ABOVE,
    ],
    'http → issuance → minting → chain: http knows issuance, and what journal and outbox have.',
  ),
  direction(
    ['service/issuance/**'],
    ['**/http/**', ...DELIVERING, ...READING, ...ABOVE],
    'http → issuance → minting → chain: issuance knows what comes after it.',
  ),
  direction(
    ['service/journal/**'],
    [
      '**/http/**',
      '**/issuance/**',
      '**/minting/**',
      '**/chain/**',
      '**/registry/**',
      ...DELIVERING,
      ...READING,
      ...ABOVE,
    ],
    'The journal knows the database only.',
  ),
  direction(
    ['service/minting/**'],
    ['**/http/**', '**/issuance/**', ...DELIVERING, ...READING, ...ABOVE],
    'http → issuance → minting → chain: minting knows the journal, the registry and the chain.',
  ),
  direction(['service/base/**'], ['../**'], 'Everything uses the leaves: they know each other only.'),
  direction(
    ['service/config/**'],
    [...LINES_AND_CHAIN, '!**/chain/networks'],
    'Everything uses the settings: they know the leaves and the networks.',
  ),
  direction(
    ['service/chain/**', 'service/database/**'],
    [...ISSUING, ...DELIVERING, ...READING, '**/registry/**', '**/config/**', ...ABOVE],
    'Both lines use this; it knows neither.',
  ),
  direction(
    ['service/keys/**'],
    [...LINES_AND_CHAIN, '!**/chain/transactions'],
    'A key signs what it is given: it knows the settings, and what a transaction is.',
  ),
  direction(
    ['service/registry/**'],
    [...ISSUING, ...DELIVERING, ...READING, '**/database/**', ...ABOVE],
    'Both lines use this; it knows the chain only.',
  ),
  direction(
    ['service/events/**'],
    [
      ...ISSUING,
      ...DELIVERING,
      ...READING,
      '**/subscriptions/**',
      '**/database/**',
      '**/chain/**',
      ...registryBut('registry-event', 'token-id-forms'),
      ...ABOVE,
    ],
    'What an event is, and who selects it: pure functions below the outbox and the subscriptions.',
  ),
  direction(
    ['service/watcher/**'],
    [...ISSUING, ...READING, '**/delivery/**', ...ABOVE],
    'watcher → outbox → delivery: the watcher knows the outbox, the registry and the chain.',
  ),
  direction(
    ['service/outbox/**'],
    [
      ...ISSUING,
      ...READING,
      ...registryBut('registry-event'),
      '**/subscriptions/**',
      '**/watcher/**',
      '**/delivery/**',
      '**/chain/**',
      ...ABOVE,
    ],
    'watcher → outbox → delivery: the outbox knows neither end, and no subscriptions.',
  ),
  direction(
    ['service/delivery/**'],
    [...ISSUING, ...READING, '**/registry/**', '**/watcher/**', '**/chain/**', ...ABOVE],
    'watcher → outbox → delivery: delivery reads the outbox and knows nothing of the chain.',
  ),
  direction(
    ['service/followed-registries/**'],
    [...ISSUING, '**/delivery/**', ...READING, ...ABOVE],
    'Both lines may be followed by it: it knows the settings, the database, the outbox and the chain.',
  ),
  direction(
    ['service/subscriptions/**'],
    [...ISSUING, ...READING, ...registryBut('token-id-forms'), '**/watcher/**', '**/chain/**', ...ABOVE],
    'Subscriptions select among stored events and name their sinks: they know nothing of the chain.',
  ),
  direction(
    ['service/did/**', 'service/token/**'],
    [...ISSUING, ...DELIVERING, '**/evidence/**', '**/verification/**', '**/database/**', ...ABOVE],
    'Reading what others published: neither line is part of it.',
  ),
  direction(
    ['service/validation/**', 'service/verification/**'],
    [...BESIDE_READING, '**/evidence/**'],
    'Reading what others published: of the lines it knows issuance only, for what a credential is.',
  ),
  direction(
    ['service/evidence/**'],
    [...BESIDE_READING, ...ABOVE_EVIDENCE],
    'It collects proofs of the chain: of the lines it knows issuance only, for what a credential is.',
  ),
  direction(
    ['evidence/**'],
    BESIDE_READING,
    'Reading what others published: of the lines it knows issuance only, for what a credential is.',
  ),
  direction(
    ['evidence/{check-*,statements.ts}', 'service/evidence/{block-encoding,proven-state,tries}.ts'],
    [...BESIDE_READING, 'node:*', '**/chain/**', '**/collect-*', './evidence', '**/fetch-json', 'undici'],
    'A check needs the file alone: whatever asks others is in collect-evidence.ts and evidence.ts.',
  ),
  direction(
    ['service/answers/**'],
    [
      ...ABOVE_EVIDENCE,
      '**/http/**',
      '**/minting/**',
      '**/watcher/follow-*',
      '**/delivery/worker',
      ...COMPOSITION,
    ],
    'Answers to programs and to the console: they read what both lines have, and know nothing of HTTP.',
  ),
  direction(
    ['service/console/**'],
    [...ABOVE_EVIDENCE, '**/http/**', '**/delivery/worker', '**/watcher/follow-*', ...COMPOSITION],
    'The console reads what both lines have, and knows nothing of HTTP.',
  ),
  direction(
    ['service/observability/**'],
    ['**/issuance/**', '**/minting/**', '**/delivery/**', ...READING, ...COMPOSITION],
    'It looks at what both lines have written down, and does nothing of what they do.',
  ),
  {
    ...direction(
      ['service/composition/**'],
      ['**/observability/contradictions'],
      'Only the composition imports the comparison of the two lines.',
    ),
    ignores: ['service/composition/observing.ts'],
  },
  direction(
    ['cli/**'],
    ['kysely', '**/database/schema'],
    'A command shows what the functions of the API and the console read: it has no statements of its own.',
  ),
  // Other lines may hold control characters that strangers wrote.
  { files: ['cli/**/*.ts'], ignores: ['cli/answer.ts'], rules: { 'no-console': 'error' } },
  {
    files: ['receiver/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!koa$|node:|\\./)',
              message: 'Subscribers copy this folder alone: koa and Node.js only.',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['cli/*.cjs'],
    languageOptions: { globals: { __dirname: 'readonly', process: 'readonly' } },
  },
  {
    files: ['**/index.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'Program', message: 'No barrels: import from the file that does it.' },
      ],
    },
  },
  {
    files: ['service/**/*.ts', 'cli/**/*.ts', 'deploy/**/*.ts', 'evidence/**/*.ts'],
    ignores: ['service/{keys,types}/**', 'service/config/settings.ts'],
    rules: { '@typescript-eslint/no-restricted-imports': ['error', { paths: OPENS_KEYS }] },
  },
  {
    files: ['service/**/*.ts'],
    ignores: ['service/{composition,issuance,keys,minting,types}/**', 'service/config/settings.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: OPENS_KEYS,
          patterns: [
            {
              group: ['**/keys/**', '!**/keys/signer-state', '!**/keys/transaction-signer'],
              message: 'Only issuing signs with these keys.',
            },
          ],
        },
      ],
    },
  },
  // A command loads its code when it runs, so `--help` answers at once.
  {
    files: ['cli/commands/**'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^\\.\\./(?!answer$|\\.\\./service/base/)',
              allowTypeImports: true,
              message: 'A command loads its code when it runs: --help answers at once.',
            },
          ],
        },
      ],
      '@typescript-eslint/no-require-imports': 'off',
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
    },
  },
  // It loads verification for a context of the issuer's own only: that takes a fifth of a start.
  {
    files: ['service/composition/issuing.ts'],
    rules: {
      '@typescript-eslint/no-require-imports': 'off',
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
    },
  },
  direction(
    ['test/unit/**'],
    ['hardhat', 'hardhat/**', '@nomicfoundation/**', '**/hardhat-here', '**/*in-process'],
    'Hardhat takes seconds to load: a test that needs it is in another folder.',
  ),
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/no-unused-expressions': 'off' } },
);
