import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { owned } from '../resources';

const run = promisify(execFile);

/** The certificates are made with openssl. */
export const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** An HTTPS server under the names of other hosts, or of this machine. */
export interface HttpsFront extends AsyncDisposable {
  port: number;
  /** Environment in which a process trusts the certificate. */
  trust: { NODE_EXTRA_CA_CERTS: string };
  /** Environment in which a process also finds the hosts here. */
  environment: Record<string, string>;
  close(): Promise<void>;
}

/**
 * Starts it with a new certificate in `folder` for these hosts. Only processes with `trust` accept it.
 *
 * @param asksForCertificate whether only clients are served that have the same certificate.
 */
export async function startHttpsFront(
  folder: string,
  hosts: Record<string, RequestListener>,
  port = 0,
  asksForCertificate = false,
): Promise<HttpsFront> {
  const names = Object.keys(hosts);
  const { key, certificate } = await makeCertificate(folder, names);
  const server = createServer(
    {
      key: readFileSync(key),
      cert: readFileSync(certificate),
      ...(asksForCertificate && { requestCert: true, ca: readFileSync(certificate) }),
    },
    (request, response) => {
      const [host = ''] = (request.headers.host ?? '').split(':');
      const listener = hosts[host];
      if (listener) listener(request, response);
      else response.writeHead(421).end();
    },
  );
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: taken } = server.address() as AddressInfo;
  const trust = { NODE_EXTRA_CA_CERTS: certificate };
  const front = {
    port: taken,
    trust,
    environment: {
      ...trust,
      NODE_OPTIONS: `--require=${join(__dirname, 'redirect-hosts.cjs')}`,
      REDIRECT_HOSTS: JSON.stringify(Object.fromEntries(names.map((name) => [name, taken]))),
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return owned(`HTTPS on port ${taken}`, front, 'close');
}

/** A listener that forwards requests to a server without TLS. */
export function forwardTo(url: () => string): RequestListener {
  return (incoming, outgoing) => {
    const { method, headers } = incoming;
    const request = httpRequest(`${url()}${incoming.url ?? ''}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    request.on('error', () => outgoing.destroy());
    incoming.pipe(request);
  };
}

export async function makeCertificate(
  folder: string,
  names: string[],
): Promise<{ key: string; certificate: string }> {
  const key = join(folder, 'key.pem');
  const certificate = join(folder, 'certificate.pem');
  const subject = ['-subj', `/CN=${names[0]}`];
  const alternatives = ['-addext', `subjectAltName=${names.map((name) => `DNS:${name}`).join()}`];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const files = ['-days', '2', '-keyout', key, '-out', certificate];
  await run('openssl', ['req', '-x509', ...curve, ...subject, ...alternatives, ...files]);
  return { key, certificate };
}
