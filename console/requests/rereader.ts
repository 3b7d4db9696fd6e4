/** The least time between two reads. */
const PAUSE_MS = 1000;

/**
 * Reads again whenever asked, at most once a second and never twice at a time: what was asked for during a
 * read is read after it.
 */
export function rereader(read: () => Promise<void>): { ask: () => void; stop: () => void } {
  let isBusy = false;
  let isAsked = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = async (): Promise<void> => {
    isBusy = true;
    isAsked = false;
    await read();
    timer = setTimeout(() => {
      isBusy = false;
      if (isAsked) void run();
    }, PAUSE_MS);
  };
  return {
    ask: () => {
      isAsked = true;
      if (!isBusy) void run();
    },
    stop: () => {
      isAsked = false;
      clearTimeout(timer);
    },
  };
}
