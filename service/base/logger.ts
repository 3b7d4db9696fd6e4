import pino, { type DestinationStream, type Logger as PinoLogger } from 'pino';
import { codeOf, cut, messageOf, ServiceError } from './errors';
import { escaped } from './printable';

/** Structured log, one JSON object a line. */
export type Logger = PinoLogger;

/** Characters of a message or a stack after which a log line cuts it off. */
const LONGEST_TEXT = 4_000;

/** Depth of a chain of causes after which a log line stops following it. */
const MAX_CAUSES = 8;

/**
 * Creates the service's logger. Every string of every line goes through `mask`, so that secrets in the
 * messages of libraries are not logged. Control characters and direction marks are escaped: what others wrote
 * could change how a line reads.
 */
export function createLogger(options: {
  level: string;
  mask: (text: string) => string;
  destination?: DestinationStream;
}): Logger {
  const { mask } = options;
  const sink = options.destination ?? pino.destination({ dest: 1, sync: true });
  // Each line is JSON and a line end, and keeps its value.
  const masked: DestinationStream = {
    write: (line) => sink.write(`${escaped(mask(line.trimEnd()))}\n`),
  };
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(given, method) {
          const fit = (one: unknown) => (typeof one === 'string' ? shortened(one, mask) : one);
          method.apply(this, given.map(fit) as typeof given);
        },
      },
      // Masked before it is shortened: part of a secret would not be recognised.
      serializers: {
        error: (thrown: unknown) => printedError(thrown, (text) => shortened(text, mask), 0),
      },
    },
    masked,
  );
}

function printedError(thrown: unknown, fit: (text: string) => string, depth: number): unknown {
  if (!(thrown instanceof Error)) return thrown;
  const { name, message, stack, cause } = thrown;
  const isOurs = thrown instanceof ServiceError;
  return {
    type: name,
    message: fit(message),
    code: codeOf(thrown),
    ...(isOurs && {
      retryable: thrown.retryable,
      reason: thrown.reason,
      remedy: thrown.remedy && fit(thrown.remedy),
    }),
    stack: isOurs || depth > 0 ? undefined : stack && fit(stack),
    cause: cause === undefined || depth === MAX_CAUSES ? undefined : printedError(cause, fit, depth + 1),
  };
}

/**
 * Makes work that never rejects of work that may fail. Of failures that follow each other, the first is
 * logged.
 */
export function loggedOnce(logger: Logger, problem: string, work: () => Promise<void>): () => Promise<void> {
  let isFailing = false;
  return async () => {
    try {
      await work();
      isFailing = false;
    } catch (error) {
      if (!isFailing) logger.warn({ error }, `${problem}: ${messageOf(error)}`);
      isFailing = true;
    }
  };
}

/** Libraries include whole requests in their messages. */
function shortened(text: string, mask: (text: string) => string): string {
  return text.length > LONGEST_TEXT ? `${cut(mask(text), LONGEST_TEXT)} (${text.length} characters)` : text;
}
