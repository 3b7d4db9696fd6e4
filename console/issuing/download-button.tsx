import { useConsole } from '../frame/console-context';
import { FailureNotice, useAction } from '../parts/feedback';
import { jsonFileName } from '../text/words';
import { saveJson } from './save-json';

interface Props {
  tokenId: string;
  isMain?: boolean;
  isDisabled?: boolean;
}

/** Saves the credential of a token that this service issued. */
export function DownloadButton({ tokenId, isMain = false, isDisabled = false }: Props) {
  const { api } = useConsole();
  const { run, isRunning, failure } = useAction();
  const download = async (): Promise<void> => {
    const { signedW3CDocument } = await api.document(tokenId);
    const { blNumber } = signedW3CDocument.credentialSubject;
    saveJson(jsonFileName(typeof blNumber === 'string' ? blNumber : tokenId), signedW3CDocument);
  };
  return (
    <>
      <button
        type="button"
        class={isMain ? 'main' : undefined}
        disabled={isDisabled}
        aria-disabled={isRunning}
        onClick={() => run(download)}
      >
        Download the credential
      </button>
      <FailureNotice failure={failure} />
    </>
  );
}
