import type { Attachment } from './draft';

/** Reads a file as an attachment of a document. */
export function readAttachment(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      // A data URL: `data:application/pdf;base64,JVBERi…`.
      const url = reader.result as string;
      const data = url.slice(url.indexOf(',') + 1);
      resolve({ filename: file.name, mimeType: file.type || 'application/octet-stream', data });
    };
    reader.onerror = () => reject(new Error(`${file.name} could not be read`));
    reader.readAsDataURL(file);
  });
}
