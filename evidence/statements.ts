/**
 * - `proven`: it follows from the hashes of the blocks in `given`, or from nothing but arithmetic.
 * - `claimed`: somebody says so, whom `because` names; nothing in the file contradicts it.
 * - `refuted`: something in the file, or the answer of a node, contradicts it.
 */
export type Status = 'proven' | 'claimed' | 'refuted';

/** The subjects of statements, in the order of a report. */
export const TOPICS = [
  'blocks',
  'transactions',
  'events',
  'contracts',
  'state',
  'history',
  'document',
  'deliveries',
] as const;

export type Topic = (typeof TOPICS)[number];

/** A statement about a token or its document. Texts may contain what strangers wrote. */
export interface Statement {
  topic: Topic;
  status: Status;
  says: string;
  /** How it is proven, who claims it, or what contradicts it. */
  because: string;
  /** Hashes of the blocks that it is proven with. */
  given: readonly string[];
  /**
   * Whether evidence is complete without a proof of it: nothing could prove it, or it is beside the
   * point.
   */
  isMinor: boolean;
}

type MakeStatement = (
  says: string,
  because: string,
  options?: Partial<Pick<Statement, 'given' | 'isMinor'>>,
) => void;

/** Collects the statements of a topic. */
export interface Statements {
  made: Statement[];
  proven: MakeStatement;
  claimed: MakeStatement;
  refuted: MakeStatement;
}

export function createStatements(topic: Topic): Statements {
  const made: Statement[] = [];
  const add =
    (status: Status): MakeStatement =>
    (says, because, { given = [], isMinor = false } = {}) => {
      made.push({ topic, status, says, because, given, isMinor });
    };
  return { made, proven: add('proven'), claimed: add('claimed'), refuted: add('refuted') };
}

/** The ones who claim what a file has without a proof. */
export const THE_FILE = 'the file says so, that is, whoever collected it and the node that was asked then';
