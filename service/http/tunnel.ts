import { ConfigurationError, ServiceError, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { type Time, untilAborted, within } from '../base/time';

/** The used part of the package `@ngrok/ngrok`, with its own names. */
export interface TunnelLibrary {
  forward(options: {
    /** Base address of the tunnel's target. */
    addr: string;
    authtoken: string;
    domain: string;
    /** Called with "closed" for each connection that was lost or failed, and with "connected". */
    onStatusChange: (status: string) => void;
  }): Promise<TunnelListener>;
}

/** The public end of a tunnel. */
export interface TunnelListener {
  url(): string | null;
  close(): Promise<void>;
}

/** A tunnel that is open, or opens. */
export interface Tunnel {
  /** Closes the tunnel, or stops opening it. Never rejects, and takes a few seconds at most. */
  close(): Promise<void>;
}

/** Target, domain and account of a tunnel. */
export interface TunnelOptions {
  time: Time;
  /** Base address that the service listens on. */
  localUrl: string;
  /** The setting DOMAIN. */
  domain: string | undefined;
  authtoken: string;
  logger: Logger;
  /** Replaced by tests. */
  load: (() => Promise<TunnelLibrary>) | undefined;
}

const LIBRARY: string = '@ngrok/ngrok';
/**
 * Without a limit, the library waits forever for a server that accepts the connection and does not answer.
 */
const OPEN_WITHIN_MS = 30_000;
const CLOSE_WITHIN_MS = 3_000;

/**
 * Opens a public tunnel to the service in the background. Failures are logged, and the service goes on. The
 * tunnel is meant for testing; a service that others rely on needs a host of its own.
 */
export function openTunnel(options: TunnelOptions): Tunnel {
  const closing = new AbortController();
  const opened = open(options, closing.signal);
  return {
    async close() {
      closing.abort();
      const listener = await opened;
      if (listener === undefined) return;
      const closed = within(options.time, CLOSE_WITHIN_MS, (late) => untilAborted(late, listener.close()));
      await closed.catch((error: unknown) =>
        options.logger.warn({ error }, 'the tunnel did not close: it ends with the process'),
      );
    },
  };
}

async function open(options: TunnelOptions, closing: AbortSignal): Promise<TunnelListener | undefined> {
  const { time, logger } = options;
  /** Undefined until it is open. The library connects again by itself, and tells of every attempt. */
  let isConnected: boolean | undefined;
  const forwarded = forward(options, (status) => {
    const wasConnected = isConnected;
    if (wasConnected === undefined || closing.aborted) return;
    isConnected = status === 'connected';
    if (isConnected && !wasConnected) logger.info('tunnel reconnected');
    if (!isConnected && wasConnected) logger.warn('tunnel disconnected: reconnecting');
  });
  try {
    const listener = await within(time, OPEN_WITHIN_MS, (late) =>
      untilAborted(AbortSignal.any([closing, late]), forwarded),
    );
    logger.info({ url: listener.url() }, 'tunnel open');
    isConnected = true;
    return listener;
  } catch (cause) {
    // A tunnel that opens after this would never be closed.
    forwarded.then((late) => late.close()).catch(() => undefined);
    if (closing.aborted) return undefined;
    const error = cause instanceof ServiceError ? cause : notOpened(cause);
    logger.warn({ error }, `${error.message} The service continues without a public address.`);
    return undefined;
  }
}

async function forward(
  { localUrl, domain, authtoken, load = loadLibrary }: TunnelOptions,
  onStatusChange: (status: string) => void,
): Promise<TunnelListener> {
  if (domain === undefined || domain.includes(':')) {
    const problem = domain === undefined ? 'DOMAIN is not set' : `DOMAIN ${domain} has a port`;
    const remedy = 'Set DOMAIN to the host name that is reserved at ngrok, without a port.';
    throw new ConfigurationError('TUNNEL_DOMAIN_UNUSABLE', `No tunnel is opened: ${problem}.`, { remedy });
  }
  const library = await load().catch((cause: unknown) => {
    const remedy = 'Run `npm ci` without leaving out optional packages, on a platform that ngrok supports.';
    const message = `No tunnel is opened: ${LIBRARY} cannot be loaded: ${oneLine(messageOf(cause))}.`;
    throw new ServiceError('TUNNEL_LIBRARY_MISSING', message, { cause, remedy });
  });
  // The wildcard address cannot be reached everywhere, the loopback address can.
  const addr = localUrl.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
  return library.forward({ addr, authtoken, domain, onStatusChange });
}

/**
 * Loads the library only when a tunnel is wanted. Its name is not a literal, because the optional package may
 * be missing when this is compiled.
 */
async function loadLibrary(): Promise<TunnelLibrary> {
  return (await import(LIBRARY)) as TunnelLibrary;
}

/**
 * The error for a tunnel that did not open. A code of ngrok means that ngrok refused it; otherwise ngrok was
 * not reached.
 */
function notOpened(cause: unknown): ServiceError {
  const isTooLate = cause instanceof Error && cause.name === 'TimeoutError';
  const reason = isTooLate ? `no answer within ${OPEN_WITHIN_MS / 1_000} s` : oneLine(messageOf(cause));
  const refusal = /ERR_NGROK_\d+/.exec(reason)?.[0];
  if (refusal === undefined) {
    const remedy =
      'Check that this machine may connect to connect.ngrok-agent.com:443, then restart the service.';
    const options = { cause, remedy };
    return new ServiceError('TUNNEL_UNREACHABLE', `The tunnel could not be opened: ${reason}.`, options);
  }
  const remedy =
    'Check TUNNEL_AUTHTOKEN, that DOMAIN is reserved for its account, and that no other tunnel uses it ' +
    `(https://ngrok.com/docs/errors/${refusal.toLowerCase()}); then restart the service.`;
  return new ServiceError('TUNNEL_REFUSED', `ngrok refused the tunnel: ${reason}.`, { cause, remedy });
}

function oneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ').replace(/\.$/, '');
}
