/** The text that `--help` prints. */
export const HELP = `\
The webhook receiver: checks the signature of each delivery, stores the event, and answers.

Usage: npx tdoc receiver [--port N] [--state]
       npx tsx main.ts [--port N] [--state]   in a copy of the folder receiver/

  --port N   listening port; wins over RECEIVER_PORT
  --state    prints the state of each token that an event changes; for subscriptions with retractions

Settings, in the environment or in the file .env; the environment wins:

  WEBHOOK_PUBLIC_KEY_FILE   the service's public key, PEM       webhook-public-key.pem
  RECEIVER_JWKS_URL         where the service publishes its keys,
                            instead of the file; https
  RECEIVER_PORT             listening port; 0 is any free one   4000
  RECEIVER_HOST             listening address                   127.0.0.1
  RECEIVER_EVENTS_FILE      where every event is stored         .receiver/received-events.jsonl
  ENV_FILE                  another file than .env

receiver/README.md says more. Ctrl-C stops it.
`;
