import { useState } from 'preact/hooks';
import type { RequestProblem } from '../../service/console/views';
import { failureFrom, type RequestFailure } from '../requests/request';
import type { Api } from '../requests/api';
import type { Draft } from './draft';
import { isRefusal, problemOfRefusal } from './problem-fields';

/** A document that was sent. The same key with the same bytes makes one document, however often. */
interface Submission {
  key: string;
  json: string;
  blNumber: string;
  isSending: boolean;
  /** Why it is not known whether the document is issued. */
  failure?: RequestFailure;
  /** Of the accepted document. */
  tokenId?: string;
}

/** What is being issued. It is kept while other pages are visited, and when the session ends. */
export interface IssuingState {
  draft: Draft | undefined;
  setDraft: (draft: Draft) => void;
  submission: Submission | undefined;
  /** The problem for which the last submission was refused. */
  refusal: RequestProblem | undefined;
  send: (api: Api, document: { json: string; blNumber: string }) => void;
  sendAgain: (api: Api) => void;
  /** Back to the form. */
  edit: () => void;
  /** A new form. */
  restart: () => void;
}

export function useIssuingState(): IssuingState {
  const [draft, setDraft] = useState<Draft>();
  const [submission, setSubmission] = useState<Submission>();
  const [refusal, setRefusal] = useState<RequestProblem>();

  const submit = async (api: Api, sent: Submission): Promise<void> => {
    setRefusal(undefined);
    setSubmission({ ...sent, isSending: true });
    // An answer that comes after the form was begun anew is nobody's.
    const change = (next: Submission | undefined): void =>
      setSubmission((now) => (now?.key === sent.key ? next : now));
    try {
      const { body } = await api.issue(sent.json, sent.key);
      const tokenId = 'tokenId' in body ? body.tokenId : body.signedW3CDocument.credentialStatus.tokenId;
      change({ ...sent, isSending: false, tokenId });
    } catch (error) {
      const failure = failureFrom(error);
      if (isRefusal(failure.status)) {
        setRefusal(problemOfRefusal(failure.code, failure.message));
        change(undefined);
      } else change({ ...sent, isSending: false, failure });
    }
  };
  const edit = (): void => {
    setSubmission(undefined);
    setRefusal(undefined);
  };
  return {
    draft,
    setDraft,
    submission,
    refusal,
    send: (api, document) => void submit(api, { ...document, key: newKey(), isSending: true }),
    sendAgain: (api) => {
      if (!submission) return;
      const { key, json, blNumber } = submission;
      void submit(api, { key, json, blNumber, isSending: true });
    },
    edit,
    restart: () => {
      edit();
      setDraft(undefined);
    },
  };
}

/** 128 random bits. `randomUUID` exists on secure pages only. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
