import { useEffect } from 'preact/hooks';

/** Asks before the tab is left while it has something that nothing else keeps. */
export function useKeptInput(hasInput: boolean): void {
  useEffect(() => {
    // A file that is dropped beside its field would replace the page.
    const ignore = (event: DragEvent): void => event.preventDefault();
    addEventListener('dragover', ignore);
    addEventListener('drop', ignore);
    return () => {
      removeEventListener('dragover', ignore);
      removeEventListener('drop', ignore);
    };
  }, []);
  useEffect(() => {
    if (!hasInput) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [hasInput]);
}
