/** The text that `--help` prints. */
export const HELP = `\
Issues transferable documents over HTTP, and delivers the events of their registry to webhooks.

Usage: npx tdoc service
       ENV_FILE=tenants/acme.env npx tdoc service

It takes no arguments. Settings are environment variables, or lines of .env; the environment wins:

  DOMAIN                   domain of the issuer's did:web
  NET                      chain id or name of the network: 31337, amoy, ...
  RPC_URL                  node to use, instead of the network's
  WALLET_PRIVATE_KEY       wallet that mints; or WALLET_SIGNER_URL, or WALLET_PKCS11_KEY
  TOKEN_REGISTRY_ADDRESS   written by: npx hardhat deploy
  DID_KEY_PAIRS            written by: npx tdoc setup; or DID_PKCS11_KEY
  SIGNING_PRIVATE_KEY      written by: npx tdoc setup
  WEBHOOK_URL              where events are delivered
  API_KEY                  key that callers of POST /create must send
  ADMIN_API_KEY            key of the API of subscriptions and of the console
  CONSOLE_READ_KEY         key that logs in to the console to look only
  HOST, PORT               listening address: 127.0.0.1, 3000
  DATA_DIR                 folder of the embedded database: .data
  DATABASE_URL             PostgreSQL, instead of the embedded database
  ENV_FILE                 another file than .env

docs/settings.md has all of them. Ctrl-C stops the service; the next start delivers the remaining events.
`;
