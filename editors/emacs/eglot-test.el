;;; eglot-test.el --- StitchCUDA in Emacs, through Eglot  -*- lexical-binding: t -*-
;; usage: emacs --batch -Q -l editors/emacs/eglot-test.el FILE.cu FILE.py STITCHCUDA
;;
;; An opt-in test of the configuration in editors/README.md, with a real Emacs and the real server. FILE.cu, a
;; program, has a finding that a rewrite answers: a call of `powf' with the exponent 3; FILE.py has one in a string. Eglot 1.9 of Debian 12 (Emacs 28) shows no inlay hints;
;; newer ones do. Prints a line for each check, then "N passed, N failed".
(require 'package)
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
(require 'eglot)
(require 'cl-lib)

(defvar stitchcuda-test-passed 0)
(defvar stitchcuda-test-failed 0)

(defun stitchcuda-test-check (name good &optional detail)
  "Say whether the check NAME is GOOD, with DETAIL."
  (if good (cl-incf stitchcuda-test-passed) (cl-incf stitchcuda-test-failed))
  (princ (format "%s %s%s\n" (if good "ok  " "FAIL") name (if detail (format ": %s" detail) ""))))

(defun stitchcuda-test-wait (predicate)
  "Wait until PREDICATE gives something, and give it."
  (let ((end (+ (float-time) 60)) value)
    (while (and (not (setq value (funcall predicate))) (< (float-time) end))
      (accept-process-output nil 0.05))
    value))

(defun stitchcuda-test-open (file)
  "Open FILE, whose mode's hook starts the server, and wait for that."
  (find-file file)
  ;; It waits for the end of a command, of which there are none in batch.
  (run-hooks 'post-command-hook)
  (stitchcuda-test-check (format "connected for %s" major-mode) (stitchcuda-test-wait #'eglot-current-server))
  (flymake-mode 1))

(defun stitchcuda-test-finding (pattern)
  "Wait for a finding whose text has PATTERN."
  (stitchcuda-test-wait
   (lambda ()
     (cl-find-if (lambda (diagnostic) (string-match-p pattern (flymake-diagnostic-text diagnostic)))
                 (flymake-diagnostics)))))

(defun stitchcuda-test-device ()
  "Profile the file, and tell where that was."
  (let ((server (eglot-current-server)))
    (eglot-execute-command server "stitchcuda.profile" (vector (eglot--path-to-uri buffer-file-name)))
    (stitchcuda-test-wait
     (lambda ()
       (cl-some (lambda (number)
                  (and (equal (plist-get number :quantity) "traffic") (plist-get number :source)))
                (plist-get (jsonrpc-request server 'stitchcuda/heat
                                            (list :textDocument (eglot--TextDocumentIdentifier)))
                           :lines))))))

(let* ((file (expand-file-name (pop command-line-args-left)))
       (python (expand-file-name (pop command-line-args-left)))
       (program (expand-file-name (pop command-line-args-left))))
  (setq command-line-args-left nil)
  ;; What the README says.
  (define-derived-mode cuda-mode c++-mode "CUDA")
  (add-to-list 'auto-mode-alist '("\\.cuh?\\'" . cuda-mode))
  (add-to-list 'eglot-server-programs `(cuda-mode . (,program "lsp")))
  (add-to-list 'eglot-server-programs `(python-mode . (,program "lsp")))
  (add-hook 'cuda-mode-hook #'eglot-ensure)
  (add-hook 'python-mode-hook #'eglot-ensure)
  (setq-default eglot-workspace-configuration
                '(:stitchcuda (:device "sim:a100" :diagnostics (:severity (:static/pow-small-exponent "warning")))))
  (setq eglot-sync-connect 30 eglot-autoshutdown nil eglot-confirm-server-initiated-edits nil)
  (stitchcuda-test-open python)
  (stitchcuda-test-check "finding in Python" (stitchcuda-test-finding "powf"))
  (set-buffer-modified-p nil)
  (eglot-shutdown (eglot-current-server))
  (stitchcuda-test-open file)
  (stitchcuda-test-check "mode" (eq major-mode 'cuda-mode))
  (let ((device (stitchcuda-test-device)))
    (stitchcuda-test-check "device" (equal device "counted on sim:a100") device))
  (let ((found (stitchcuda-test-finding "powf")))
    (stitchcuda-test-check "finding" found (and found (flymake-diagnostic-text found)))
    (when found
      (stitchcuda-test-check "settings" (stitchcuda-test-wait
                                         (lambda ()
                                           (cl-find-if (lambda (diagnostic)
                                                         (eq (flymake-diagnostic-type diagnostic) 'eglot-warning))
                                                       (flymake-diagnostics)))))
      (goto-char (flymake-diagnostic-beg found))
      (let ((hover (jsonrpc-request (eglot-current-server) :textDocument/hover
                                    (eglot--TextDocumentPositionParams))))
        (stitchcuda-test-check "hover" (plist-get hover :contents)))
      (let* ((actions (eglot-code-actions (point) (flymake-diagnostic-end found) "quickfix"))
             (fix (cl-find-if (lambda (action) (plist-get action :edit)) actions)))
        (stitchcuda-test-check "quick fix" fix (and fix (plist-get fix :title)))
        (when fix
          (eglot--apply-workspace-edit (plist-get fix :edit))
          (stitchcuda-test-check "edit" (save-excursion
                                          (goto-char (point-min))
                                          (search-forward "x[i] * x[i] * x[i]" nil t)))
          ;; Sent when Emacs is idle, which it never is in batch.
          (eglot--signal-textDocument/didChange)
          (stitchcuda-test-check "finding gone" (stitchcuda-test-wait
                                                 (lambda () (null (flymake-diagnostics)))))))))
  (set-buffer-modified-p nil)
  (let ((server (eglot-current-server)))
    (eglot-shutdown server)
    (stitchcuda-test-check "server gone" (not (jsonrpc-running-p server)))))
(princ (format "%d passed, %d failed\n" stitchcuda-test-passed stitchcuda-test-failed))
(kill-emacs (if (zerop stitchcuda-test-failed) 0 1))
