import { RequestFailure } from '../requests/request';
import { escapedText } from '../text/visible-characters';
import type { Attachment } from './draft';

/** Reads a file as an attachment of a document. */
export function readAttachment(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    const refuse = (): void => {
      const message = `${escapedText(file.name)} could not be read. Check that it exists and add it again.`;
      reject(new RequestFailure(0, 'FILE_UNREADABLE', message));
    };
    reader.onload = () => {
      // A data URL: `data:application/pdf;base64,JVBERi…`. That of an empty file may be `data:` alone.
      const [, data = ''] = (typeof reader.result === 'string' ? reader.result : '').split(',');
      if (data === '' && file.size > 0) return refuse();
      resolve({ filename: file.name, mimeType: file.type || 'application/octet-stream', data });
    };
    reader.onerror = refuse;
    reader.readAsDataURL(file);
  });
}
