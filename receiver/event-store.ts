import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { dedupeKeyOf, type Received } from './received-event';
import { readStoredEvents } from './stored-events';

interface WaitingLine {
  bytes: Buffer;
  stored: () => void;
  failed: (cause: unknown) => void;
}

/**
 * Every event received so far, and what is marked as unknown: a file with one JSON line for each, only ever
 * appended to, and the index by which duplicates are found. One process at a time may have the file open.
 */
export class EventStore {
  readonly #file: FileHandle;
  readonly #known: Set<string>;
  readonly #arriving = new Map<string, Promise<void>>();
  /** Length of the file up to its last line that is safely on disk. */
  #size: number;
  #isDirty = false;
  #waiting: WaitingLine[] = [];
  #writing: Promise<void> | undefined;

  private constructor(file: FileHandle, stored: { keys: Set<string>; size: number }) {
    this.#file = file;
    this.#known = stored.keys;
    this.#size = stored.size;
  }

  /**
   * Opens the file, creating it and its folder for their owner alone if need be, and reads back which events
   * it holds. A last line without its newline was being written when the process was killed and was never
   * acknowledged: it is cut off.
   */
  static async open(path: string): Promise<EventStore> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      // One that was there keeps its mode otherwise.
      await file.chmod(0o600);
      const stored = await readStoredEvents(file, path);
      await file.truncate(stored.size);
      await file.sync();
      await syncFolder(dirname(path));
      return new EventStore(file, stored);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Stores an event, unless it is there already. When this resolves, the event is on disk and survives a
   * power cut; when it rejects, the event is not stored and may be added again.
   */
  async add(event: Received): Promise<'stored' | 'duplicate'> {
    const key = dedupeKeyOf(event);
    if (this.#known.has(key)) return 'duplicate';
    const arriving = this.#arriving.get(key);
    if (arriving) {
      await arriving;
      return 'duplicate';
    }
    const appended = this.#append(Buffer.from(`${JSON.stringify(event)}\n`));
    this.#arriving.set(key, appended);
    try {
      await appended;
      this.#known.add(key);
      return 'stored';
    } finally {
      this.#arriving.delete(key);
    }
  }

  /** Finishes what is being written and closes the file. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }

  #append(bytes: Buffer): Promise<void> {
    return new Promise((stored, failed) => {
      this.#waiting.push({ bytes, stored, failed });
      this.#writing ??= this.#writeWaiting();
    });
  }

  /**
   * One write at a time. Lines that came in during the last one share the next, for a sync costs the same for
   * many as for one.
   */
  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(Buffer.concat(lines.map((line) => line.bytes)));
        lines.forEach((line) => line.stored());
      } catch (cause) {
        lines.forEach((line) => line.failed(cause));
      }
    }
    this.#writing = undefined;
  }

  async #write(bytes: Buffer): Promise<void> {
    // What a failed write left behind goes first, or a shorter line would leave its end standing in the file.
    if (this.#isDirty) await this.#file.truncate(this.#size);
    this.#isDirty = true;
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#size + done);
      done += bytesWritten;
    }
    await this.#file.datasync();
    this.#isDirty = false;
    this.#size += bytes.length;
  }
}

/**
 * A new file's name is safe only once its folder is on disk too. Windows cannot open folders, and needs no
 * such thing.
 */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
