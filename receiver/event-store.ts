import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import { dedupeKeyOf, type Received } from './received-event';
import { readStoredEvents } from './stored-events';

/** Options of the store. */
export interface StoreOptions {
  /** The key by which a duplicate is recognised. Defaults to `dedupeKeyOf`. */
  keyOf?: (received: Received) => string;
  /** Called for each event that is in the file already, in order. */
  onStored?: (received: Received) => void;
  /** Called for each line of the file that is damaged. It stays in the file, and is not used. */
  onDamaged?: (problem: string) => void;
}

const MEND_LINE = 'Stop the receiver before you correct or remove it.';
const NAME_OTHER = 'Set RECEIVER_EVENTS_FILE to another file.';

interface WaitingLine {
  bytes: Buffer;
  stored: () => void;
  failed: (cause: unknown) => void;
}

/**
 * All events and unknown deliveries received so far: an append-only file with one JSON line each, and an
 * index that finds duplicates. Only one store at a time has the file open.
 */
export class EventStore {
  readonly #file: FileHandle;
  readonly #lock: Server | undefined;
  readonly #known: Set<string>;
  readonly #keyOf: (received: Received) => string;
  readonly #arriving = new Map<string, Promise<void>>();
  /** Length of the file up to its last line that is safely on disk. */
  #size: number;
  #isDirty = false;
  #waiting: WaitingLine[] = [];
  #writing: Promise<void> | undefined;

  private constructor(
    file: FileHandle,
    lock: Server | undefined,
    stored: { keys: Set<string>; size: number },
    keyOf: (received: Received) => string,
  ) {
    this.#file = file;
    this.#lock = lock;
    this.#known = stored.keys;
    this.#size = stored.size;
    this.#keyOf = keyOf;
  }

  /**
   * Opens the file and reads its events. If need be, it creates the file and its folder, readable by their
   * owner only. An incomplete last line is cut off: the process was killed while it wrote the line, so the
   * event was never acknowledged.
   *
   * @throws Error if the file cannot be used, or another process uses it. The file is then unchanged.
   */
  static async open(path: string, options: StoreOptions = {}): Promise<EventStore> {
    const { keyOf = dedupeKeyOf, onStored, onDamaged } = options;
    const file = await openFile(path);
    let lock: Server | undefined;
    try {
      lock = await lockFile(file, path);
      const keys = new Set<string>();
      const { size, end } = await readStoredEvents(file, {
        onStored(received) {
          keys.add(keyOf(received));
          onStored?.(received);
        },
        onDamaged: (line) => onDamaged?.(`Line ${line} of ${path} is damaged and was skipped. ${MEND_LINE}`),
      });
      if (end === 'of no events file')
        throw new Error(`${path} is no file of received events. ${NAME_OTHER}`);
      // An existing file would otherwise keep its mode.
      await file.chmod(0o600);
      await file.truncate(size);
      // An editor may leave the newline out.
      if (end === 'without newline') await file.write('\n', size);
      await file.sync();
      await syncFolder(dirname(path));
      return new EventStore(file, lock, { keys, size: (await file.stat()).size }, keyOf);
    } catch (error) {
      await file.close();
      lock?.close();
      throw error;
    }
  }

  /**
   * Stores an event unless it is there already. When this resolves, the event is on disk and survives a power
   * cut. When it rejects, the event is not stored and may be added again.
   */
  async add(event: Received): Promise<'stored' | 'duplicate'> {
    const key = this.#keyOf(event);
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

  /** Finishes pending writes and closes the file. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
    this.#lock?.close();
  }

  #append(bytes: Buffer): Promise<void> {
    return new Promise((stored, failed) => {
      this.#waiting.push({ bytes, stored, failed });
      this.#writing ??= this.#writeWaiting();
    });
  }

  /**
   * Writes one batch at a time. Lines that arrive during a write share the next one, because a sync costs the
   * same for many lines as for one.
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
    // The remains of a failed write are removed first: a shorter line would leave the end of them in the
    // file.
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
 * Where no name can be locked, a second receiver then cannot overwrite lines of the first. Windows cannot cut
 * off the end of such a file.
 */
const APPENDING = process.platform === 'win32' ? 0 : constants.O_APPEND;

/** Opens the file for reading and appending. */
async function openFile(path: string): Promise<FileHandle> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return await open(path, constants.O_RDWR | constants.O_CREAT | APPENDING, 0o600);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const remedy = 'Give the user of this process the file and its folder, or set RECEIVER_EVENTS_FILE.';
    throw new Error(`The events file ${path} cannot be written: ${reason}. ${remedy}`, { cause });
  }
}

/**
 * Takes a name that is made from the file's identity and that one process of the machine can have. The
 * operating system frees it when the process ends, also after SIGKILL. A lock file would remain, and Node.js
 * has no flock. Other systems than Linux and Windows have no such names: there, nothing is locked.
 */
async function lockFile(file: FileHandle, path: string): Promise<Server | undefined> {
  const prefix = { linux: '\0', win32: '\\\\.\\pipe\\' }[process.platform as string];
  if (prefix === undefined) return undefined;
  const { dev, ino } = await file.stat({ bigint: true });
  const lock = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    lock.once('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EADDRINUSE') return reject(cause);
      const remedy = 'Stop it, or set RECEIVER_EVENTS_FILE to another file.';
      reject(new Error(`Another receiver uses the events file ${path}. ${remedy}`, { cause }));
    });
    lock.listen(`${prefix}webhook-receiver-${dev}-${ino}`, () => resolve(lock));
  });
}

/**
 * The name of a new file is safe only once its folder is on disk too. Windows cannot open folders, and does
 * not need it.
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
