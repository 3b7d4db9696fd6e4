import explained from './explained-codes.json';

/** A code of the header X-Error-Code. */
export type ErrorCode = keyof typeof explained;

/**
 * The reason of each error of the API, and the remedy. Markdown, in half sentences. docs/error-codes.md has
 * the same, and the codes of the log and of the commands besides.
 */
export const ERROR_CODES = explained as Readonly<Record<ErrorCode, ExplainedCode>>;

interface ExplainedCode {
  readonly why: string;
  readonly remedy?: string;
  /** For a 500: the one who has to act. `nobody`: send the request again later. By default the operator. */
  readonly actor?: 'caller' | 'nobody';
}
