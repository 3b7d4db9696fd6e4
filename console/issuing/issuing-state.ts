import type { RequestProblem, Validation } from '../../service/validation/problems';
import type { Api } from '../requests/api';
import { failureFrom, RequestFailure } from '../requests/request';
import {
  bytesOf,
  checkedPart,
  MOST_BYTES,
  problemOfRefusal,
  REFUSALS,
  requestOf,
  withRequired,
  type Attachment,
  type Draft,
} from './draft';

/** A document that was sent. */
interface Submission {
  json: string;
  blNumber: string;
  /** Why it is not known whether the document is issued. */
  failure?: RequestFailure;
  /** The token of the accepted document. */
  tokenId?: string;
}

const TOO_LARGE = new RequestFailure(
  0,
  'FILE_TOO_LARGE',
  'With these files the document has more than 50 MB. Add smaller ones.',
);

/** The state of the form before anything is typed. */
export const NOTHING = {
  draft: undefined as Draft | undefined,
  /** The last check of the draft. */
  validation: undefined as Validation | undefined,
  /** Whether somebody wanted to issue it: then every problem is shown. */
  isTried: false,
  isReadingFiles: false,
  isChecking: false,
  /** Why files could not be read, or the draft could not be checked. */
  failure: undefined as RequestFailure | undefined,
  submission: undefined as Submission | undefined,
  /** The problem for which the last submission was refused. */
  refusal: undefined as RequestProblem | undefined,
};

type IssuingNow = typeof NOTHING;

type IssuingApi = Pick<Api, 'validate' | 'issue'>;

/** The state is kept while other pages are visited, and when the session ends. */
export type IssuingState = IssuingNow & ReturnType<typeof createIssuing>;

/** The same key with the same bytes makes one document, however often it is sent. */
export function createIssuing(changed: (now: IssuingNow) => void, makeKey = randomKey) {
  let now: IssuingNow = NOTHING;
  // The key of each document that may have been issued, by its bytes.
  let keys = new Map<string, string>();
  const set = (part: Partial<IssuingNow>): void => {
    now = { ...now, ...part };
    changed(now);
  };
  /** Sets a part unless the form was begun anew meanwhile. */
  const setter = (): typeof set => {
    const form = keys;
    return (part) => {
      if (form === keys) set(part);
    };
  };

  const submit = async (api: IssuingApi, json: string, blNumber: string): Promise<void> => {
    const uncertain = keys;
    const key = uncertain.get(json) ?? makeKey();
    uncertain.set(json, key);
    const setThis = setter();
    setThis({ submission: { json, blNumber }, refusal: undefined });
    try {
      const { body } = await api.issue(json, key);
      uncertain.delete(json);
      const tokenId = 'tokenId' in body ? body.tokenId : body.signedW3CDocument.credentialStatus.tokenId;
      setThis({ submission: { json, blNumber, tokenId } });
    } catch (error) {
      const failure = failureFrom(error);
      if (!REFUSALS.has(failure.code)) return setThis({ submission: { json, blNumber, failure } });
      uncertain.delete(json);
      setThis({ submission: undefined, refusal: problemOfRefusal(failure.code, failure.message) });
    }
  };

  return {
    /** Changes the draft, which is `first` before the first change. */
    change: (update: (draft: Draft) => Draft, first: Draft): void =>
      set({ draft: update(now.draft ?? first), refusal: undefined }),
    checked: (validation: Validation): void => set({ validation }),
    /** Adds files to the draft. The document cannot be issued before all are read. */
    attach: async <T extends { size: number }>(
      files: readonly T[],
      read: (file: T) => Promise<Attachment>,
      first: Draft,
    ): Promise<void> => {
      if (now.isReadingFiles || now.isChecking || now.submission) return;
      // Base64 has four bytes for three.
      const added = files.reduce((sum, { size }) => sum + Math.ceil(size / 3) * 4, 0);
      if (bytesOf(now.draft ?? first) + added > MOST_BYTES) return set({ failure: TOO_LARGE });
      const setThis = setter();
      set({ isReadingFiles: true, failure: undefined });
      try {
        const attached = await Promise.all(files.map(read));
        const draft = now.draft ?? first;
        const attachments = [...draft.attachments, ...attached];
        setThis({ isReadingFiles: false, draft: { ...draft, attachments }, refusal: undefined });
      } catch (error) {
        setThis({ isReadingFiles: false, failure: failureFrom(error) });
      }
    },
    /** Checks the draft and sends it, unless that happens already. */
    issue: async (api: IssuingApi, draft: Draft): Promise<void> => {
      if (now.isReadingFiles || now.isChecking || now.submission) return;
      const form = keys;
      const setThis = setter();
      set({ draft, isTried: true, isChecking: true, failure: undefined });
      try {
        const validation = await check(api, draft);
        setThis({ isChecking: false, ...(validation && { validation }) });
        // A draft that was changed meanwhile is not what somebody wanted to issue.
        if (form !== keys || now.draft !== draft) return;
        if (withRequired(validation?.problems ?? []).some(({ isRefused }) => isRefused)) return;
      } catch (error) {
        return setThis({ isChecking: false, failure: failureFrom(error) });
      }
      await submit(api, JSON.stringify(requestOf(draft)), draft.terms.blNumber ?? '');
    },
    sendAgain: async (api: IssuingApi): Promise<void> => {
      const { submission } = now;
      if (submission?.failure) await submit(api, submission.json, submission.blNumber);
    },
    /** Returns from an uncertain document to its form. */
    edit: (): void => set({ submission: undefined, refusal: undefined }),
    /** Begins a new form. */
    restart: (): void => {
      keys = new Map();
      set(NOTHING);
    },
  };
}

/** Undefined if the texts are too long for the check. POST /create takes more, and checks the same. */
async function check(api: IssuingApi, draft: Draft): Promise<Validation | undefined> {
  try {
    return await api.validate(checkedPart(draft), new AbortController().signal);
  } catch (error) {
    if (failureFrom(error).status === 413) return undefined;
    throw error;
  }
}

/** 128 random bits. `randomUUID` exists on secure pages only. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
