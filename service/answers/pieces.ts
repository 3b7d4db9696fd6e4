/** A message between processes: bytes come in pieces, before the message that needs them. */
export type Message<Other> = Uint8Array | Other;

/** Either end of a channel between processes. */
interface Channel {
  send?(message: Uint8Array, done: (error: Error | null) => void): boolean;
}

/** Node.js copies a message in one turn: one of 50 MB would block all others for a tenth of a second. */
const PIECE_BYTES = 1024 * 1024;

/** Sends bytes, and yields to the event loop between the pieces. */
export async function sendPieces(channel: Channel, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    await new Promise<void>((resolve, reject) => {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      channel.send?.(piece, (error) => (error ? reject(error) : resolve()));
    });
}
